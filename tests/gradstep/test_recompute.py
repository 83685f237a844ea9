"""A recomputed chain gives what the plain one gives, and holds L/k + k."""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointError, checkpoint

from gradstep.activation_bytes import peak_activation_bytes
from gradstep.recompute import best_segment, checkpoint_chain, segment_peak

from .chains import chained, dropout, network, plain, results

SIZES = (1, 2, 4, 8, 16, 32, 64)


@pytest.mark.parametrize("segment", [1, 2, 4, 5, 7, 18, 100])
def test_outputs_and_all_gradients_equal_those_without_dropout_included(segment: int) -> None:
    expected, found = results(network(dropout), plain), results(network(dropout), chained(segment))
    assert expected.keys() == found.keys()
    assert len(found) == 2 + 2 * 6
    for name in expected:
        assert torch.equal(expected[name], found[name]), name


def test_without_the_generator_state_outputs_still_equal_and_gradients_do_not() -> None:
    forgetful = chained(4, preserve_rng_state=False)
    expected, found = results(network(dropout), plain), results(network(dropout), forgetful)
    assert torch.equal(expected["output"], found["output"])
    error = (expected["input gradient"] - found["input gradient"]).norm()
    assert error > 0.1 * expected["input gradient"].norm()
    unneeded = results(network(), forgetful)  # nothing random: nothing to keep
    assert torch.equal(unneeded["input gradient"], results(network(), plain)["input gradient"])


def test_dropout_gradient_is_its_mask_only_with_the_generator_state() -> None:
    def masks(preserve: bool) -> tuple[list[float], list[float]]:
        torch.manual_seed(0)
        x = torch.ones(8, requires_grad=True)
        output = checkpoint_chain([nn.Dropout(0.5)], x, 1, preserve_rng_state=preserve)
        output.sum().backward()
        return output.tolist(), x.grad.tolist()

    kept, lost = masks(True), masks(False)
    assert kept[0] == kept[1] == lost[0] != lost[1]


def test_generators_of_python_are_not_kept() -> None:
    def noisy(x: Tensor) -> Tensor:
        return x * torch.tensor([random.random()])

    random.seed(0)
    x = torch.ones(1, requires_grad=True)
    output = checkpoint_chain([noisy], x, 1)
    output.sum().backward()
    assert abs(x.grad - output) > 0.01  # the factor is another one, and nothing says so


def test_no_gradients_no_recomputation() -> None:
    model, calls = network(), list[int]()
    model[0].register_forward_hook(lambda *_: calls.append(1))
    x = torch.ones(2, 5, dtype=torch.float64)
    with torch.no_grad():
        assert torch.equal(checkpoint_chain(model, x, 3), model(x))
    assert len(calls) == 2
    checkpoint_chain(model, x, 3).sum().backward()
    assert len(calls) == 4


def test_functions_and_tuples_pass_through_a_chain() -> None:
    def split(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.sin(), x.cos()

    def join(pair: tuple[Tensor, Tensor]) -> Tensor:
        return pair[0] * pair[1]

    x = torch.arange(3.0, requires_grad=True)
    checkpoint_chain((f for f in (split, join, torch.exp)), x, 2).sum().backward()
    (expected,) = torch.autograd.grad((x.sin() * x.cos()).exp().sum(), x)
    assert torch.equal(x.grad, expected)


# memory


class Layer(nn.Module):
    """Keeps one activation, of 64 kB for the rows below, and 64 bytes of weights."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).tanh()


def measured(layers: nn.Sequential, segment: int | None, **options: Any) -> float:
    """The peak of one forward and backward pass, in activations."""
    layers.zero_grad()
    x = torch.ones(4096, 4)

    def run() -> None:
        # no name for the output: it would be alive in all of backward, one more
        (checkpoint_chain(layers, x, segment, **options) if segment else layers(x)).sum().backward()

    return peak_activation_bytes(run) / x.nbytes


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Small layers spend their time waiting for a second one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_measured_peak_is_the_model() -> None:
    layers = nn.Sequential(*(Layer() for _ in range(64)))
    lean = {"preserve_rng_state": False}  # nothing random, and 5 kB for each segment otherwise
    peaks = {size: measured(layers, size, **lean) for size in SIZES}
    # a tenth of one: the gradients of 64 weights of 64 bytes, next to 64 kB
    assert peaks == pytest.approx({size: segment_peak(64, size) for size in SIZES}, abs=0.1)
    assert min(peaks, key=peaks.__getitem__) == 8 == best_segment(64)
    assert measured(layers, None) > 4 * peaks[8]
    assert measured(layers, 1) > peaks[1] + 3  # 64 states of the generator


@pytest.mark.usefixtures("one_thread")
def test_buffers_are_copied_only_where_there_are_some() -> None:
    plain_layers = nn.Sequential(*(Layer() for _ in range(9)))
    lean = {"preserve_rng_state": False}
    assert measured(plain_layers, 3, **lean) == measured(
        plain_layers, 3, preserve_buffers=False, **lean
    )


def test_model_counts_the_inputs_of_segments_and_one_segment() -> None:
    assert [segment_peak(64, size) for size in SIZES] == [65, 34, 20, 16, 20, 34, 65]
    assert segment_peak(10, 3) == 4 + 3
    assert segment_peak(10, 100) == 1 + 10
    assert segment_peak(1, 1) == 2


def test_best_segment_is_near_the_root() -> None:
    for root in range(1, 30):
        assert best_segment(root**2) == root
    for count in range(1, 300):
        best = best_segment(count)
        peaks = [segment_peak(count, size) for size in range(1, count + 1)]
        assert peaks[best - 1] == min(peaks)
        assert peaks[best - 1] == math.ceil(2 * math.sqrt(count))
        assert all(peak > min(peaks) for peak in peaks[best:])


# what torch itself does


def test_reentrant_checkpoints_lose_the_gradient_behind_a_frozen_input() -> None:
    def gradients(run: Callable[[nn.Module, Tensor], Tensor]) -> tuple[Any, Any]:
        torch.manual_seed(0)
        layer, head = nn.Linear(3, 3), nn.Linear(3, 1)
        head(run(layer, torch.ones(2, 3))).sum().backward()
        return layer.weight.grad, head.weight.grad

    def reentrant(layer: nn.Module, x: Tensor) -> Tensor:
        with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
            return checkpoint(layer, x, use_reentrant=True)

    lost, head = gradients(reentrant)
    assert lost is None
    assert head is not None
    kept, same_head = gradients(lambda layer, x: checkpoint_chain([layer], x, 1))
    expected, _ = gradients(lambda layer, x: layer(x))
    assert torch.equal(kept, expected)
    assert torch.equal(head, same_head)


def test_reentrant_checkpoints_do_not_look_into_outputs() -> None:
    def boxed(x: Tensor) -> dict[str, Tensor]:
        return {"y": 2 * x}

    x = torch.ones(1, requires_grad=True)
    assert not checkpoint(boxed, x, use_reentrant=True)["y"].requires_grad
    assert checkpoint_chain([boxed], x, 1)["y"].requires_grad


def test_another_shape_raises_and_another_value_does_not() -> None:
    def changing(second: Callable[[Tensor], Tensor]) -> Tensor:
        calls: list[int] = []

        def layer(x: Tensor) -> Tensor:
            calls.append(1)
            return (x if len(calls) == 1 else second(x)).exp()

        x = torch.ones(4, requires_grad=True)
        checkpoint_chain([layer], x, 1).sum().backward()
        assert len(calls) == 2
        return x.grad

    with pytest.raises(CheckpointError, match="different metadata"):
        changing(lambda x: x[:3])
    assert torch.equal(changing(lambda x: x), torch.ones(4).exp())
    assert torch.equal(changing(lambda x: 0 * x), torch.ones(4))  # silently wrong


# refusals


@pytest.mark.parametrize("segment", [0, -3])
def test_segments_below_one_are_refused(segment: int) -> None:
    message = rf"segment must be at least 1, got {segment}\."
    with pytest.raises(ValueError, match=message):
        checkpoint_chain([torch.exp], torch.ones(1), segment)
    with pytest.raises(ValueError, match=message):
        segment_peak(3, segment)


@pytest.mark.parametrize("segment", [2.0, "2", True, None])
def test_segments_that_are_no_integers_are_refused(segment: Any) -> None:
    message = rf"segment must be an integer, got {segment!r} of type {type(segment).__name__}\."
    with pytest.raises(TypeError, match=message):
        checkpoint_chain([torch.exp], torch.ones(1), segment)
    with pytest.raises(TypeError, match=message):
        segment_peak(3, segment)


def test_layer_counts_below_one_are_refused() -> None:
    for function in (best_segment, lambda count: segment_peak(count, 1)):
        with pytest.raises(ValueError, match=r"layer_count must be at least 1, got 0\."):
            function(0)
        with pytest.raises(TypeError, match=r"layer_count must be an integer, got 8\.0"):
            function(8.0)


@pytest.mark.parametrize("layers", [[], nn.Sequential()])
def test_chains_without_a_layer_are_refused(layers: Any) -> None:
    with pytest.raises(ValueError, match=r"layers must hold at least one layer, got none\."):
        checkpoint_chain(layers, torch.ones(1), 1)


def test_things_that_are_no_chain_are_refused() -> None:
    with pytest.raises(TypeError, match=r"layers must be .* got one Linear\. Pass an nn\.Seq"):
        checkpoint_chain(nn.Linear(1, 1), torch.ones(1), 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"but layer 1 is tensor\(\[1\.\]\) of type Tensor"):
        checkpoint_chain([torch.exp, torch.ones(1)], torch.ones(1), 1)  # type: ignore[list-item]
