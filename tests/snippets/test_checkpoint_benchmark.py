"""The benchmark for a GPU, run small on the CPU with the calls to CUDA stood in for.

What those calls measure is not tested here; the rest of the program is.
"""

import re

import pytest
import torch
from snippets import checkpoint_benchmark as benchmark


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of zero bytes, a device with a name."""
    for name in ("synchronize", "empty_cache", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    for name in ("max_memory_allocated", "max_memory_reserved"):
        monkeypatch.setattr(torch.cuda, name, lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a stand-in")


@pytest.mark.usefixtures("stand_in")
def test_checkpoint_benchmark_compares_five_runs(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main("cpu", width=8, count=16, passes=2)
    head, *runs = capsys.readouterr().out.splitlines()
    assert head == f"a stand-in, torch {torch.__version__}, float32, 16 rows"
    names = ["no checkpoints", *(f"segments of {k}" for k in (1, 2, 5, 10))]
    assert [run.partition(":")[0].strip() for run in runs] == names
    losses = [re.search(r"loss (\S+),", run)[1] for run in runs]
    assert len(set(losses)) == 1
    assert float(losses[0]) > 0


@pytest.mark.usefixtures("stand_in")
def test_checkpoint_benchmark_fails_where_recomputation_drops_other_entries(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = benchmark.checkpoint_chain

    def forgetful(*args):
        return right(*args, preserve_rng_state=False)

    monkeypatch.setattr(benchmark, "checkpoint_chain", forgetful)
    with pytest.raises(AssertionError):
        benchmark.main("cpu", width=8, count=16, passes=2)
    assert re.search(r"segments of 1 .* gradient off by \d\.\de-01\n$", capsys.readouterr().out)
