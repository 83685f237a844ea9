"""`updates` against a hand-written loop, Accelerate and Lightning Fabric."""

import copy
import itertools
import math
import warnings
from collections.abc import Callable
from functools import partial
from statistics import median

import accelerate
import lightning_fabric
import torch
from torch import Tensor
from torch.nn import functional
from torch.optim import SGD, AdamW

import gradstep

from .timing import ratio, side_by_side, table

Pair = tuple[Tensor, Tensor]
Loop = Callable[[torch.nn.Module, list[Pair], torch.optim.Optimizer], Callable[[], object]]
WIDTHS = (16, 256, 1024)
STEPS = 4


def report(rounds: int = 40) -> str:
    """All tables, as Markdown."""
    torch.set_num_threads(1)
    rows = [_time_row(width, rounds if width < 1024 else rounds // 4) for width in WIDTHS]
    head = ["width", "by hand", *(f"{name} / by hand" for name in list(LOOPS)[1:])]
    versions = f"accelerate {accelerate.__version__}, fabric {lightning_fabric.__version__}"
    times = table(f"One update of {STEPS} microbatches of 8 rows, AdamW, {versions}", head, rows)
    errors = [[name, f"{_error(loop):.1e}"] for name, loop in LOOPS.items()]
    title = "Gradient against float64, targets 3, 11, 22, 36"
    return times + "\n" + table(title, ["loop", "largest absolute error"], errors)


def by_hand(
    model: torch.nn.Module, batches: list[Pair], optimizer: torch.optim.Optimizer
) -> Callable[[], object]:
    """The bare loop with the right denominator."""

    def update() -> Tensor:
        total = sum((targets != -100).sum() for _, targets in batches).item()
        optimizer.zero_grad()
        for inputs, targets in batches:
            (functional.cross_entropy(model(inputs), targets, reduction="sum") / total).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return norm

    return update


def by_gradstep(
    model: torch.nn.Module, batches: list[Pair], optimizer: torch.optim.Optimizer
) -> Callable[[], object]:
    """`updates`, started once for all windows of an epoch, as in use."""
    epoch = itertools.chain.from_iterable(itertools.repeat(batches))
    run = gradstep.updates(model, epoch, optimizer, accumulation_steps=STEPS)
    return lambda: next(run)


def by_accelerate(
    model: torch.nn.Module, batches: list[Pair], optimizer: torch.optim.Optimizer
) -> Callable[[], object]:
    """As in its guide: the mean loss, divided by the number of steps in `backward`."""
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=STEPS)
    model, optimizer = accelerator.prepare(model, optimizer)

    def update() -> None:
        for inputs, targets in batches:
            with accelerator.accumulate(model):
                accelerator.backward(functional.cross_entropy(model(inputs), targets))
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()

    return update


def by_fabric(
    model: torch.nn.Module, batches: list[Pair], optimizer: torch.optim.Optimizer
) -> Callable[[], object]:
    """As in its guide: the mean loss of each microbatch; nothing divides."""
    fabric = lightning_fabric.Fabric(accelerator="cpu", devices=1)
    module, optimizer = fabric.setup(model, optimizer)

    def update() -> None:
        for number, (inputs, targets) in enumerate(batches, 1):
            with fabric.no_backward_sync(module, enabled=number < STEPS):
                fabric.backward(functional.cross_entropy(module(inputs), targets))
        fabric.clip_gradients(module, optimizer, max_norm=1.0)
        optimizer.step()
        optimizer.zero_grad()

    return update


LOOPS: dict[str, Loop] = {
    "by hand": by_hand,
    "gradstep": by_gradstep,
    "accelerate": by_accelerate,
    "fabric": by_fabric,
}


def _model(width: int) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(width, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, 10),
    )


def _batches(width: int, counts: tuple[int, ...], rows: int) -> list[Pair]:
    """Microbatches of `rows` rows, of which `counts` have a target."""
    torch.manual_seed(1)
    batches = []
    for count in counts:
        targets = torch.randint(0, 10, (rows,))
        targets[count:] = -100
        batches.append((torch.randn(rows, width), targets))
    return batches


def _time_row(width: int, rounds: int) -> list[str]:
    model, batches = _model(width), _batches(width, (8,) * STEPS, rows=8)
    calls = {}
    for name, loop in LOOPS.items():
        # one model for the first two: where memory lies can make a tenth of the time. The
        # frameworks change what they are given, so each has a copy
        own = model if loop in (by_hand, by_gradstep) else copy.deepcopy(model)
        calls[name] = loop(own, batches, AdamW(own.parameters(), 1e-4))
    seconds = side_by_side({name: partial(_ten, call) for name, call in calls.items()}, rounds)
    hand = seconds["by hand"]
    ratios = [f"{ratio(seconds[name], hand):.2f}" for name in list(LOOPS)[1:]]
    return [str(width), f"{median(hand) * 100:.2f} ms", *ratios]


def _ten(call: Callable[[], object]) -> None:
    for _ in range(10):
        call()


def _error(loop: Loop) -> float:
    """How far the update of plain SGD at rate 1 is from the float64 gradient."""
    model, batches = _model(16).double(), _batches(16, (3, 11, 22, 36), rows=36)
    batches = [(inputs.double(), targets) for inputs, targets in batches]
    with torch.no_grad():
        model[-1].weight *= 0.2  # a gradient shorter than the threshold: nothing clips
    exact = copy.deepcopy(model)
    inputs, targets = (torch.cat(parts) for parts in zip(*batches, strict=True))
    functional.cross_entropy(exact(inputs), targets).backward()
    before = copy.deepcopy(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loop(model, batches, SGD(model.parameters(), 1.0))()
    return max(
        (old - new - reference.grad).abs().max().item() if reference.grad is not None else math.nan
        for old, new, reference in zip(
            before.parameters(), model.parameters(), exact.parameters(), strict=True
        )
    )
