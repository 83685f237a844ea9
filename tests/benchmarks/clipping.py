"""`clip_grad_norm_` against torch's and against the copy bandwidth of this machine."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
import torch
from torch.nn import Parameter

import gradstep
from gradstep.arrays import clip_grad_norm

from .timing import Call, ratio, side_by_side, table

Clip = Callable[[float], object]

SHAPES = {"200 x 50,000": (200, 50_000), "1 x 50M": (1, 50_000_000), "2,000 x 256": (2000, 256)}


def report(rounds: int = 30) -> str:
    """All tables, as Markdown."""
    parts = [_torch_table(threads, rounds) for threads in (1, 2)]
    torch.set_num_threads(1)
    return "\n".join([*parts, _numpy_table(rounds), _error_table()])


def parameters_of(count: int, entries: int) -> list[Parameter]:
    """Parameters with standard normal gradients, seeded."""
    torch.manual_seed(0)
    parameters = [Parameter(torch.zeros(entries)) for _ in range(count)]
    for parameter in parameters:
        parameter.grad = torch.randn(entries)
    return parameters


def falling(start: float) -> Callable[[], float]:
    """Thresholds that each clip what the last one left, without a reset between calls."""
    steps = itertools.count(1)
    return lambda: start * 0.999 ** next(steps)


def _torch_table(threads: int, rounds: int) -> str:
    torch.set_num_threads(threads)
    rows = []
    for name, (count, entries) in SHAPES.items():
        parameters = parameters_of(count, entries)
        norm = gradstep.global_norm([p.grad for p in parameters]).item()
        theirs = partial(torch.nn.utils.clip_grad_norm_, parameters)
        ours = partial(gradstep.clip_grad_norm_, parameters)
        source = [torch.randn(entries) for _ in parameters]
        copy = partial(torch._foreach_copy_, [torch.empty_like(t) for t in source], source)
        rows += _two_rows(name, theirs, ours, copy, norm, rounds)
    title = f"Clipping, float32, {threads} thread{'s' * (threads > 1)}, torch {torch.__version__}"
    return table(title, ["case", "torch", "gradstep", "torch / gradstep", "over limit"], rows)


def _numpy_table(rounds: int) -> str:
    rows = []
    for name, (count, entries) in SHAPES.items():
        rng = np.random.default_rng(0)
        grads = [rng.standard_normal(entries, dtype=np.float32) for _ in range(count)]
        norm = clip_grad_norm(grads, math.inf)
        pairs = [(np.empty_like(grad), np.zeros_like(grad)) for grad in grads]
        copy = partial(_copy_all, pairs)
        plain, ours = partial(_plain, grads), partial(clip_grad_norm, grads)
        rows += _two_rows(name, plain, ours, copy, norm, rounds)
    head = ["case", "sqrt(sum(sum(g**2)))", "gradstep.arrays", "plain / gradstep", "over limit"]
    return table(f"Clipping, float32, NumPy {np.__version__}", head, rows)


def _two_rows(
    name: str, other: Clip, ours: Clip, copy: Call, norm: float, rounds: int
) -> list[list[str]]:
    """Below the threshold and clipping; the limit is the time that copies of tensors of the same
    number and size need for as many bytes.
    """
    rows = []
    bounds = {"below": (lambda: math.inf, 4), "clips": (falling(norm), 12)}
    for case, (bound, moved) in bounds.items():
        calls = {"copy": copy, "other": _at(other, bound), "ours": _at(ours, bound)}
        seconds = side_by_side(calls, rounds)
        limit = [t * moved / 8 for t in seconds["copy"]]  # a copy reads 4 bytes, writes 4
        times = [f"{median(seconds[key]) * 1e3:.2f} ms" for key in ("other", "ours")]
        gain, over = ratio(seconds["other"], seconds["ours"]), ratio(seconds["ours"], limit)
        rows.append([f"{name}, {case}", *times, f"{gain:.2f}", f"{over:.2f}"])
    return rows


def _at(clip: Clip, bound: Callable[[], float]) -> Call:
    return lambda: clip(bound())


def _copy_all(pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    for target, source in pairs:
        np.copyto(target, source)


def _plain(grads: list[np.ndarray], max_norm: float) -> float:
    norm = float(np.sqrt(sum(np.sum(g**2) for g in grads)))
    if norm > max_norm:
        for g in grads:
            g *= max_norm / norm
    return norm


def _error_table() -> str:
    gradient = torch.full((100_000_000,), 0.01)
    exact = gradient[0].double().item() * 1e4
    errors = {
        "torch": torch.nn.utils.get_total_norm([gradient]).item() / exact - 1,
        "gradstep": gradstep.global_norm([gradient]).item() / exact - 1,
    }
    rows = [[name, f"{error:.1e}"] for name, error in errors.items()]
    return table("Norm of 1e8 entries of 0.01, float32", ["function", "relative error"], rows)
