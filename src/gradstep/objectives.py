"""Additive losses: a sum for each microbatch, and the denominator that makes it a mean."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from ._arguments import integer_from

__all__ = ["Additive", "CrossEntropy", "MeanSquaredError", "Objective", "count_targets"]


class Objective(Protocol):
    """What [`updates`][gradstep.updates] needs of a loss.

    The loss of a window is the sum of its microbatches' loss *sums*, divided once by the
    sum of their denominators. Anything with these two methods will do.
    """

    def __call__(self, model: Callable[..., Any], microbatch: Any) -> Tensor:
        """The loss sum of one microbatch, a tensor without dimensions."""

    def denominator(self, microbatch: Any) -> float | Tensor:
        """What the microbatch adds to the denominator, known before any forward pass."""


def count_targets(targets: Tensor, ignore_index: int = -100) -> int:
    """Count the supervised targets: those other than `ignore_index`.

    Args:
        targets: Class indices of any shape.
        ignore_index: The index that marks a target without supervision.

    Returns:
        The number of entries that differ from `ignore_index`.

    Raises:
        TypeError: `targets` is no tensor, or `ignore_index` is no integer.

    Examples:
        >>> import torch, gradstep
        >>> gradstep.count_targets(torch.tensor([0, 1, -100, 2, 0, -100, 1]))
        5
    """
    if not isinstance(targets, Tensor):
        raise TypeError(
            f"targets must be a tensor, got {targets!r:.60} of type {type(targets).__name__}. Use "
            "torch.as_tensor."
        )
    return int(targets.ne(integer_from(None, "ignore_index", ignore_index)).sum())


@dataclass(frozen=True)
class CrossEntropy:
    """Cross entropy of `model(inputs)` against class indices.

    A microbatch is a pair `(inputs, targets)`. The denominator is the number of targets
    other than `ignore_index`; with class weights it is the sum of the weights of these
    targets, as in `torch.nn.functional.cross_entropy` with `reduction="mean"`.

    Args:
        weight: A weight for each class, float, shape (classes,); `None` for equal ones.
        ignore_index: Targets with this index do not count.
        label_smoothing: As in torch, between 0 and 1.
        class_dim: The dimension of the logits that runs over classes: 1 as in torch, -1
            where a language model puts classes last.

    Examples:
        >>> import torch, gradstep
        >>> weighted = gradstep.CrossEntropy(weight=torch.tensor([1.0, 3.0]))
        >>> inputs, targets = torch.randn(3, 5), torch.tensor([0, 1, -100])
        >>> weighted.denominator((inputs, targets))
        tensor(4.)

    Source:
        `torch.nn.functional.cross_entropy`.
    """

    weight: Tensor | None = None
    ignore_index: int = -100
    label_smoothing: float = 0.0
    class_dim: int = 1

    def __post_init__(self) -> None:
        """Refuse weights that are no tensor."""
        if self.weight is not None and not isinstance(self.weight, Tensor):
            raise TypeError(
                f"weight must be a tensor with a weight for each class, got {self.weight!r:.60} of "
                f"type {type(self.weight).__name__}. Use torch.tensor."
            )

    def __call__(self, model: Callable[..., Any], microbatch: Any) -> Tensor:
        """The loss sum over the supervised targets of one microbatch."""
        inputs, targets = _pair(microbatch)
        logits = _at_least_float32(model(inputs))
        return functional.cross_entropy(
            logits if self.class_dim == 1 else logits.movedim(self.class_dim, 1),
            targets,
            self.weight,
            reduction="sum",
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )

    def denominator(self, microbatch: Any) -> Tensor:
        """The number of supervised targets, or the sum of their weights."""
        _, targets = _pair(microbatch)
        if targets.is_floating_point():
            raise TypeError(
                f"targets must be class indices, got {targets.dtype} of shape "
                f"{tuple(targets.shape)}. For class probabilities pass objective=Additive(...), "
                "whose count is the number of rows."
            )
        supervised = targets.ne(self.ignore_index)
        if self.weight is None:
            return supervised.sum()
        return self.weight[targets[supervised]].sum()


@dataclass(frozen=True)
class MeanSquaredError:
    """Squared error of `model(inputs)` against targets of the same shape.

    A microbatch is a pair `(inputs, targets)`. The denominator is the number of target
    *elements*, as in `torch.nn.functional.mse_loss`, not of rows.

    Examples:
        >>> import torch, gradstep
        >>> inputs, targets = torch.randn(3, 5), torch.randn(3, 2)
        >>> gradstep.MeanSquaredError().denominator((inputs, targets))
        6

    Source:
        `torch.nn.functional.mse_loss`.
    """

    def __call__(self, model: Callable[..., Any], microbatch: Any) -> Tensor:
        """The sum of squared errors over all elements of one microbatch."""
        inputs, targets = _pair(microbatch)
        outputs = _at_least_float32(model(inputs))
        if outputs.shape != targets.shape:
            raise ValueError(
                f"targets must have the shape of the outputs, {tuple(outputs.shape)}, got "
                f"{tuple(targets.shape)}: broadcasting would change the loss. Reshape them."
            )
        return functional.mse_loss(outputs, targets, reduction="sum")

    def denominator(self, microbatch: Any) -> int:
        """The number of target elements."""
        return int(_pair(microbatch)[1].numel())


@dataclass(frozen=True)
class Additive:
    """An objective from two functions.

    Args:
        loss_sum: `loss_sum(model, microbatch)` returns the loss sum.
        count: `count(microbatch)` returns what it adds to the denominator.

    Examples:
        >>> import torch, gradstep
        >>> absolute = gradstep.Additive(
        ...     loss_sum=lambda model, batch: (model(batch["x"]) - batch["y"]).abs().sum(),
        ...     count=lambda batch: batch["y"].numel(),
        ... )
        >>> absolute.denominator({"x": torch.randn(3, 5), "y": torch.randn(3, 2)})
        6
    """

    loss_sum: Callable[[Callable[..., Any], Any], Tensor]
    count: Callable[[Any], float | Tensor]

    def __post_init__(self) -> None:
        """Refuse what cannot be called."""
        for name, function in (("loss_sum", self.loss_sum), ("count", self.count)):
            if not callable(function):
                raise TypeError(f"{name} must be a function, got {function!r:.60}.")

    def __call__(self, model: Callable[..., Any], microbatch: Any) -> Tensor:
        """The loss sum of one microbatch."""
        return self.loss_sum(model, microbatch)

    def denominator(self, microbatch: Any) -> float | Tensor:
        """What the microbatch adds to the denominator."""
        return self.count(microbatch)


def _at_least_float32(outputs: Tensor) -> Tensor:
    # a sum over many targets, and 1 / their number, would lose digits in half precision
    return outputs.float() if outputs.dtype in (torch.float16, torch.bfloat16) else outputs


def _pair(microbatch: Any) -> tuple[Tensor, Tensor]:
    if isinstance(microbatch, (tuple, list)) and len(microbatch) == 2:
        inputs, targets = microbatch
        if isinstance(targets, torch.Tensor):
            return inputs, targets
    raise TypeError(
        "a microbatch must be a pair (inputs, targets) with tensor targets, got "
        f"{type(microbatch).__name__}. For another form pass objective=Additive(...)."
    )
