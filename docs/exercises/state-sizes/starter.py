def state_bytes(
    shapes: list[tuple[int, ...]], trained: list[bool], dtype: str, optimizer: str, master: bool
) -> dict[str, int]:
    """Bytes of what lives from update to update, by kind, and in total.

    The optimizer is "sgd", "momentum", "adam" or "amsgrad"; `master` is whether it works on a
    float32 copy of the trained parameters.
    """
    ...
