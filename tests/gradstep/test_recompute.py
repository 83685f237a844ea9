"""A recomputed chain gives what the plain one gives, moves its buffers once, and holds L/k + k."""

import copy
import math
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointError, checkpoint

from gradstep.activation_bytes import peak_activation_bytes
from gradstep.buffers import moving_buffers, replay_buffers
from gradstep.recompute import best_segment, checkpoint_chain, segment_peak

SIZES = (1, 2, 4, 8, 16, 32, 64)
Run = Callable[[nn.Sequential, Tensor], Tensor]


def network(*middle: Callable[[], nn.Module], depth: int = 6) -> nn.Sequential:
    torch.manual_seed(0)
    layers = [m for _ in range(depth) for m in (nn.Linear(5, 5), nn.Tanh(), *(f() for f in middle))]
    return nn.Sequential(*layers).double()


def results(model: nn.Sequential, run: Run) -> dict[str, Tensor]:
    """The output, the gradient of the input and those of all parameters."""
    torch.manual_seed(1)
    x = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    output = run(model, x)
    (output * torch.randn(7, 5, dtype=torch.float64)).sum().backward()
    grads = {name: p.grad for name, p in model.named_parameters()}
    assert all(g is not None and g.count_nonzero() > 0 for g in (x.grad, *grads.values()))
    return {"output": output.detach(), "input gradient": x.grad, **grads}


def plain(model: nn.Sequential, x: Tensor) -> Tensor:
    return model(x)


def chained(segment: int, **options: Any) -> Run:
    return lambda model, x: checkpoint_chain(model, x, segment, **options)


def unheld(segment: int) -> Run:
    """Without the replay of buffers, and so with the warning that they move."""

    def run(model: nn.Sequential, x: Tensor) -> Tensor:
        with pytest.warns(UserWarning, match="recomputation will move them a second time"):
            return checkpoint_chain(model, x, segment, preserve_buffers=False)

    return run


def dropout() -> nn.Module:
    return nn.Dropout(0.3)


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


# running statistics


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


def test_things_that_are_no_module_have_no_buffers_to_replay() -> None:
    for function in (replay_buffers, moving_buffers):
        with pytest.raises(TypeError, match=r"torch\.nn\.Module was expected, got <built-in"):
            function(torch.exp)
