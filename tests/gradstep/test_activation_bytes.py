"""Peaks in bytes that can be counted by hand, and refusals before a profiler can crash."""

import json
import threading
import time
from typing import Any

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from gradstep import activation_bytes
from gradstep.activation_bytes import peak_activation_bytes

KB = 250  # float32 entries


def test_peak_is_what_was_alive_at_once() -> None:
    def one_after_another() -> None:
        for size in (1, 3, 2):
            torch.empty(size * KB)

    def together() -> None:
        _ = [torch.empty(size * KB) for size in (1, 3, 2)]

    assert peak_activation_bytes(one_after_another) == 3000
    assert peak_activation_bytes(together) == 6000
    assert peak_activation_bytes(lambda: torch.empty(KB)) == 1000  # what is returned counts
    assert peak_activation_bytes(lambda: None) == 0


def test_temporaries_count() -> None:
    x = torch.ones(KB, dtype=torch.float16)
    assert peak_activation_bytes(lambda: x.float().half()) == 1000 + 500


def test_backward_counts_and_what_was_there_before_does_not() -> None:
    x = torch.ones(KB, requires_grad=True)
    x.grad = torch.zeros(KB)
    # the result of exp, the gradient of x before it is added; the sum and its gradient
    assert peak_activation_bytes(lambda: x.exp().sum().backward()) == 2000 + 8
    assert x.grad.count_nonzero() == KB


def test_releasing_what_was_there_before_changes_nothing() -> None:
    before = [torch.empty(1000 * KB)]

    def release() -> None:
        before.clear()
        torch.empty(KB)

    assert peak_activation_bytes(release) == 1000


def test_peak_is_the_same_every_time() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.Dropout(0.1), nn.Linear(30, 2))
    x = torch.randn(50, 20)

    def run() -> None:
        model(x).sum().backward()

    run()  # from here on gradients exist
    assert len({peak_activation_bytes(run) for _ in range(3)}) == 1


def test_an_error_of_the_function_is_passed_on_and_ends_the_measurement() -> None:
    with pytest.raises(ZeroDivisionError):
        peak_activation_bytes(lambda: 1 / 0)
    assert peak_activation_bytes(lambda: torch.empty(KB)) == 1000


def test_a_second_profiler_is_refused_before_torch_crashes() -> None:
    message = "a profiler is running already"
    with pytest.raises(RuntimeError, match=message):
        peak_activation_bytes(lambda: peak_activation_bytes(lambda: None))
    with profile(activities=[ProfilerActivity.CPU]), pytest.raises(RuntimeError, match=message):
        peak_activation_bytes(lambda: None)
    assert peak_activation_bytes(lambda: torch.empty(KB)) == 1000


def test_torch_still_tells_whether_a_profiler_runs() -> None:
    # the one name in it that torch does not document
    assert torch.autograd.profiler._is_profiler_enabled is False
    with profile(activities=[ProfilerActivity.CPU]):
        assert torch.autograd.profiler._is_profiler_enabled is True


def test_threads_take_turns() -> None:
    found: dict[int, int] = {}

    def measure(size: int) -> None:
        def run() -> None:
            _ = torch.empty(size * KB)
            time.sleep(0)  # offers the turn

        found[size] = peak_activation_bytes(run)

    threads = [threading.Thread(target=measure, args=(size,)) for size in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {size: 1000 * size for size in range(1, 5)}


def test_memory_of_another_device_is_refused() -> None:
    events = [{"Device Type": 0, "Bytes": 8}, {"Device Type": 1, "Bytes": 512}]
    with pytest.raises(RuntimeError, match=r"another device\. Use torch\.cuda\.max_memory"):
        activation_bytes._peak(events)
    assert activation_bytes._peak(events[:1]) == 8


def test_events_are_read_from_the_trace_in_the_order_of_time() -> None:
    class Record:
        def export_chrome_trace(self, path: str) -> None:
            events: list[dict[str, Any]] = [
                {"name": "[memory]", "ts": 2, "args": {"Bytes": -4}},
                {"name": "aten::add", "ts": 3},
                {"ph": "M", "name": "[memory]", "ts": 1, "args": {"Bytes": 4}},
            ]
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"traceEvents": events}, file)

    found = activation_bytes._memory_events(Record())  # type: ignore[arg-type]
    assert [event["Bytes"] for event in found] == [4, -4]


@pytest.mark.parametrize("value", [None, torch.ones(1), 3])
def test_things_that_cannot_be_called_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"function must be callable .* of type .*Write lambda: "):
        peak_activation_bytes(value)
