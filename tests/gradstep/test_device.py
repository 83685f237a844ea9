"""The path for accelerators: on the CPU for its numbers, on CUDA for its synchronizations."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gradstep import NonfiniteGradientError, _device, clip_grad_norm_, clip_grad_value_
from gradstep._gradients import given_gradients, gradients_of

from . import oracle


def tensors_of_all_kinds() -> list[Tensor]:
    torch.manual_seed(0)
    plain = [torch.randn(30, 40).to(dtype) for dtype in oracle.DTYPES for _ in range(2)]
    return [*plain, torch.randn(9, dtype=torch.complex64), torch.zeros(0), torch.eye(3).to_sparse()]


class ReadBacks(TorchDispatchMode):
    """Counts values read by Python, for which the host would wait on an accelerator."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("order", [0.5, 1, 2, 3, math.inf])
def test_device_norm_equals_the_cpu_norm(order: float) -> None:
    for tensors in (tensors_of_all_kinds(), [torch.randn(5, 7)], [torch.full((4,), 1e20)]):
        found = oracle.parameters_with(*tensors)
        scale, ratio = _device.measure_on_device(given_gradients(tensors), order)
        expected = clip_grad_norm_(found, math.inf, order)
        torch.testing.assert_close(scale * ratio, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("order", [2, 3, math.inf])
@pytest.mark.parametrize("bound", [0.5, 1e4])
@pytest.mark.parametrize("divisor", [1.0, 24.0])
def test_device_clipping_equals_cpu_clipping(order: float, bound: float, divisor: float) -> None:
    ours, other = (oracle.parameters_with(*tensors_of_all_kinds()) for _ in range(2))
    _device.clip_norm_on_device(gradients_of(ours), bound, order, "leave", divisor)
    clip_grad_norm_(other, bound, order, divide_by=divisor)
    for mine, expected in zip(ours, other, strict=True):
        torch.testing.assert_close(mine.grad.to_dense(), expected.grad.to_dense())


@pytest.mark.parametrize("bound", [0.5, 1e4])
def test_device_value_clipping_equals_cpu_value_clipping(bound: float) -> None:
    ours, other = (oracle.parameters_with(*tensors_of_all_kinds()) for _ in range(2))
    _device.clip_value_on_device(gradients_of(ours), bound, "leave")
    clip_grad_value_(other, bound)
    for mine, expected in zip(ours, other, strict=True):
        assert torch.equal(mine.grad.to_dense(), expected.grad.to_dense())


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_device_leaves_or_names_what_is_not_finite(wrong: float) -> None:
    tensors = [torch.tensor([3.0, -4.0]), torch.tensor([wrong, 2.0])]
    before = [oracle.bits(tensor).clone() for tensor in tensors]
    gradients = gradients_of(oracle.parameters_with(*tensors))
    norm = _device.clip_norm_on_device(gradients, 1.0, 2, "leave").item()
    assert math.isnan(norm) if math.isnan(wrong) else norm == math.inf
    _device.clip_value_on_device(gradients, 1.0, "leave")
    for policy in (
        lambda: _device.clip_norm_on_device(gradients, 1.0, 2, "raise"),
        lambda: _device.clip_value_on_device(gradients, 1.0, "raise"),
    ):
        with pytest.raises(NonfiniteGradientError, match="parameter number 1 is not finite"):
            policy()
    for tensor, saved in zip(tensors, before, strict=True):
        assert torch.equal(oracle.bits(tensor), saved)


@pytest.mark.parametrize("order", [2, 3, math.inf])
def test_device_path_reads_nothing_back_unless_it_must_raise(
    order: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_device, "at_most", lambda bound, dtype: bound)  # it reads host memory
    tensors = [torch.randn(30, 40).to(dtype) for dtype in oracle.DTYPES]
    gradients = gradients_of(oracle.parameters_with(*tensors))
    with ReadBacks() as read_backs:
        _device.clip_norm_on_device(gradients, 1.0, order, "leave")
        _device.clip_value_on_device(gradients, 1.0, "leave")
        assert read_backs.count == 0
        _device.clip_norm_on_device(gradients, 1.0, order, "raise")
        assert read_backs.count == 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA: not run here")
@pytest.mark.parametrize("order", [2, 3, math.inf])
def test_cuda_clips_without_a_synchronization(order: float) -> None:
    tensors = [torch.randn(300, 40).to(dtype) for dtype in oracle.DTYPES]
    ours = oracle.parameters_with(*(tensor.cuda() for tensor in tensors))
    other = oracle.parameters_with(*(tensor.clone() for tensor in tensors))
    torch.cuda.set_sync_debug_mode("error")
    try:
        norm = clip_grad_norm_(ours, 1.0, order, nonfinite="leave")
        clip_grad_value_(ours, 0.01, nonfinite="leave")
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert norm.is_cuda
    torch.testing.assert_close(norm.cpu(), clip_grad_norm_(other, 1.0, order))
    clip_grad_value_(other, 0.01)
    for mine, expected in zip(ours, other, strict=True):
        torch.testing.assert_close(mine.grad.cpu(), expected.grad)
