"""Buffers move once under recomputation, a warning says where they would move twice."""

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gradstep.buffers import moving_buffers, replay_buffers
from gradstep.recompute import checkpoint_chain

from .chains import Run, chained, dropout, network, plain, results, unheld


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float32).reshape(-1, 1).requires_grad_()


def test_batch_norm_statistics_move_twice_and_once_where_they_are_replayed() -> None:
    def moved(run: Run) -> tuple[float, float, int]:
        norm = nn.BatchNorm1d(1)
        run(nn.Sequential(norm), column(0, 2, 10, 12)).square().sum().backward()
        return (norm.running_mean.item(), norm.running_var.item(), int(norm.num_batches_tracked))

    # momentum 0.1: 0.1 * 6 = 0.6, then 0.9 * 0.6 + 0.6 = 1.14
    assert moved(unheld(1)) == pytest.approx((1.14, 7.39667, 2), rel=1e-5)
    assert moved(chained(1)) == pytest.approx((0.6, 4.36667, 1), rel=1e-5)


def test_buffers_of_a_whole_network_move_as_without_checkpointing() -> None:
    models = [network(lambda: nn.BatchNorm1d(5), dropout) for _ in range(3)]
    runs = plain, chained(5), unheld(5)
    once, replayed, twice = (results(*pair) for pair in zip(models, runs, strict=True))
    for name in once:
        assert torch.equal(once[name], replayed[name])
        assert torch.equal(once[name], twice[name])  # only the statistics tell
    expected, found, wrong = (dict(model.named_buffers()) for model in models)
    assert len(expected) == 3 * 6
    for name in expected:
        assert torch.equal(expected[name], found[name]), name
        assert not torch.equal(expected[name], wrong[name]), name


def spectral() -> nn.Module:
    return nn.utils.parametrizations.spectral_norm(nn.Linear(5, 5))


@pytest.mark.parametrize(
    "make",
    [spectral, lambda: nn.utils.spectral_norm(nn.Linear(5, 5))],
    ids=["parametrization", "hook"],
)
def test_spectral_norm_gives_wrong_gradients_unless_it_is_replayed(
    make: Callable[[], nn.Module],
) -> None:
    runs = plain, chained(3), unheld(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch calls the hook deprecated
        models = [network(make) for _ in runs]
    expected, found, wrong = (results(*pair) for pair in zip(models, runs, strict=True))
    for name in expected:
        assert torch.equal(expected[name], found[name]), name
    assert torch.equal(expected["output"], wrong["output"])
    assert not torch.allclose(expected["input gradient"], wrong["input gradient"], rtol=1e-3)
    buffers = [dict(model.named_buffers()) for model in models]
    assert all(torch.equal(buffers[0][name], buffers[1][name]) for name in buffers[0])
    assert not all(torch.equal(buffers[0][name], buffers[2][name]) for name in buffers[0])


# the warning that buffers move twice


def warned(model: nn.Sequential, x: Tensor, segment: int = 2, **options: Any) -> list[str]:
    """The warnings of a pass forward and backward, which come from the line of the call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        output = checkpoint_chain(model, x, segment, **options)
        if output.requires_grad:
            output.sum().backward()
    assert all(w.category is UserWarning and w.filename == __file__ for w in caught)
    return [str(warning.message) for warning in caught]


def input_with_gradient() -> Tensor:
    return torch.randn(7, 5, dtype=torch.float64, requires_grad=True)


def test_modules_whose_buffers_move_twice_are_named_in_one_warning() -> None:
    model = moving()
    (message,) = warned(model, input_with_gradient(), preserve_buffers=False)
    named = "layer 2 (BatchNorm1d), layer 3.parametrizations.weight.0 (_SpectralNorm), layer 6 ("
    assert f"forward moved buffers of {named}BatchNorm1d) and 1 more, and recomp" in message
    assert "Leave preserve_buffers=True (in your own call of checkpoint: context_fn=re" in message
    assert int(model[2].num_batches_tracked) == 2  # it is true


def test_every_way_to_move_a_buffer_is_seen() -> None:
    x = torch.randn(7, 5, 3, requires_grad=True)
    instance = nn.InstanceNorm1d(5, track_running_stats=True)  # writes, and counts nothing
    for layer in (Counted(), instance, nn.BatchNorm1d(5, affine=False)):
        (message,) = warned(nn.Sequential(layer), x, preserve_buffers=False)
        assert f"buffers of layer 0 ({type(layer).__name__}), and" in message


def moving() -> nn.Sequential:
    return network(lambda: nn.BatchNorm1d(5), spectral, depth=2)


def frozen() -> nn.Sequential:
    """BatchNorm that the usual recipe freezes, inside of a model in training mode."""
    model = network(lambda: nn.BatchNorm1d(5), depth=2)
    for module in model:
        if isinstance(module, nn.BatchNorm1d):
            module.eval().requires_grad_(False)
    return model


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (moving, {}),
        (lambda: moving().eval(), {"preserve_buffers": False}),
        (frozen, {"preserve_buffers": False}),
        (network, {"preserve_buffers": False}),
    ],
    ids=["held", "eval", "frozen", "no buffers"],
)
def test_nothing_is_warned_of_where_nothing_moves_twice(
    make: Callable[[], nn.Sequential], options: dict[str, bool]
) -> None:
    model, reference = make(), make()
    x = input_with_gradient()
    reference(x)
    assert warned(model, x, **options) == []
    for found, expected in zip(model.buffers(), reference.buffers(), strict=True):
        assert torch.equal(found, expected)


def test_what_is_not_recomputed_is_not_warned_of() -> None:
    model = nn.Sequential(nn.BatchNorm1d(5, affine=False), nn.Linear(5, 5)).double()
    x = input_with_gradient().detach()
    assert warned(model, x, 1, preserve_buffers=False) == []  # the first segment needs no gradient
    assert int(model[0].num_batches_tracked) == 1
    with torch.no_grad():
        assert warned(moving(), x, preserve_buffers=False) == []
    assert len(warned(model, x, 2, preserve_buffers=False)) == 1
    assert int(model[0].num_batches_tracked) == 3


def test_a_checkpoint_call_of_ones_own_with_a_replay_is_held() -> None:
    norm, x = nn.BatchNorm1d(5).double(), input_with_gradient()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replay = replay_buffers(norm)
        checkpoint(norm, x, use_reentrant=False, context_fn=replay).sum().backward()
    assert int(norm.num_batches_tracked) == 1


class Counted(nn.Module):
    """Its buffer is exchanged, not written, and its output depends on what it was."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        output = (x * self.seen).exp()
        self.seen = self.seen + 1
        return output


def test_a_retained_graph_recomputes_twice_from_the_same_buffers() -> None:
    layer, x = Counted(), torch.ones(2, requires_grad=True)
    for call in (1.0, 2.0):
        loss = checkpoint_chain([layer], x, 1).sum()
        for _ in range(2):
            (gradient,) = torch.autograd.grad(loss, x, retain_graph=True)
            assert torch.allclose(gradient, torch.full((2,), call * math.exp(call)))
        assert layer.seen == call + 1


def test_a_retained_graph_recomputes_twice_where_the_buffers_are_written_in_place() -> None:
    torch.manual_seed(0)
    layer, x = spectral(), torch.randn(3, 5, requires_grad=True)
    start = copy.deepcopy(layer.state_dict())
    (expected,) = torch.autograd.grad(layer(x).exp().sum(), x)
    layer.load_state_dict(start)
    loss = checkpoint_chain([layer, torch.exp], x, 2).sum()
    for _ in range(3):
        (gradient,) = torch.autograd.grad(loss, x, retain_graph=True)
        assert torch.equal(gradient, expected)


def test_windows_of_several_forward_passes_replay_each_its_own() -> None:
    layer, x = Counted(), torch.ones(1, requires_grad=True)
    first, second = (checkpoint_chain([layer], x, 1).sum() for _ in range(2))
    second.backward()
    first.backward()
    assert x.grad.item() == pytest.approx(math.e + 2 * math.e**2)
    assert layer.seen == 3


def test_nested_checkpoints_replay_too() -> None:
    layer, x = Counted(), torch.ones(1, requires_grad=True)

    def inner(y: Tensor) -> Tensor:
        return checkpoint_chain([layer, torch.sin], y, 1)

    replay = replay_buffers(layer)
    checkpoint(inner, x, use_reentrant=False, context_fn=replay).sum().backward()
    assert x.grad.item() == pytest.approx(math.e * math.cos(math.e))
    assert layer.seen == 2


def test_a_buffer_in_two_places_stays_one() -> None:
    class Adds(nn.Module):
        def __init__(self, seen: Tensor) -> None:
            super().__init__()
            self.register_buffer("seen", seen)

        def forward(self, x: Tensor) -> Tensor:
            self.seen.add_(1)
            return (x * self.seen.clone()).exp()

    seen, x = torch.zeros(()), torch.ones(1, requires_grad=True)
    first, second = Adds(seen), Adds(seen)
    checkpoint_chain([first, second], x, 2).sum().backward()
    assert first.seen is second.seen is seen
    assert seen == 2
    # of exp(2 exp(x)): the second layer has seen what the first has added
    assert x.grad.item() == pytest.approx(2 * math.e * math.exp(2 * math.e), rel=1e-5)


def test_buffers_are_put_back_after_an_error_in_recomputation() -> None:
    layer, calls = Counted(), list[int]()

    def fails_later(x: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) == 2:
            raise KeyError("later")
        return x.exp()

    output = checkpoint_chain([layer, fails_later], torch.ones(1, requires_grad=True), 2)
    left = layer.seen
    with pytest.raises(KeyError, match="later"):
        output.sum().backward()
    assert layer.seen is left


def test_moving_buffers_are_found_by_what_they_do() -> None:
    x = torch.randn(4, 5, dtype=torch.float64)
    model = network(lambda: nn.BatchNorm1d(5), spectral, nn.Identity, depth=1)
    statistics = [f"2.{name}" for name in ("running_mean", "running_var", "num_batches_tracked")]
    vectors = [f"3.parametrizations.weight.0.{name}" for name in ("_u", "_v")]
    before = {name: (buffer, buffer.clone()) for name, buffer in model.named_buffers()}
    state = torch.get_rng_state()
    assert moving_buffers(model, x) == statistics + vectors
    assert list(before) == statistics + vectors
    for name, buffer in model.named_buffers():
        assert buffer is before[name][0]
        assert torch.equal(buffer, before[name][1])
    assert torch.equal(torch.get_rng_state(), state)
    assert moving_buffers(Counted(), x) == ["seen"]
    assert moving_buffers(model.eval(), x) == []
    assert moving_buffers(network(dropout), x) == []
    assert moving_buffers(nn.BatchNorm1d(5, track_running_stats=False).double(), input=x) == []


def test_moving_buffers_puts_everything_back_after_an_error() -> None:
    norm = nn.BatchNorm1d(5)
    state, mean = torch.get_rng_state(), norm.running_mean
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        moving_buffers(nn.Sequential(dropout(), norm), torch.ones(1, 5))
    assert torch.equal(torch.get_rng_state(), state)
    assert norm.running_mean is mean


def test_things_that_are_no_module_have_no_buffers_to_replay() -> None:
    for function in (replay_buffers, moving_buffers):
        with pytest.raises(TypeError, match=r"torch\.nn\.Module was expected, got <built-in"):
            function(torch.exp)
