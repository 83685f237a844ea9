"""Every process-wide source of random numbers, as data that any reader may load."""

import random
from typing import Any

import numpy as np
import torch


def random_state() -> dict[str, Any]:
    """The state of Python's, NumPy's and torch's own generators, the CUDA devices' included."""
    version, words, gauss = random.getstate()
    numpy_state: Any = np.random.get_state(legacy=False)
    key = torch.from_numpy(numpy_state["state"]["key"].astype(np.int64))
    return {
        "python": (version, torch.tensor(words), gauss),  # as a tensor: 625 objects less to pickle
        "numpy": {**numpy_state, "state": {**numpy_state["state"], "key": key}},
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Continue every generator where `state` was taken."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words.tolist()), gauss))
    numpy_state = state["numpy"]
    key = numpy_state["state"]["key"].numpy().astype(np.uint32)
    np.random.set_state({**numpy_state, "state": {**numpy_state["state"], "key": key}})
    torch.set_rng_state(state["torch"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
