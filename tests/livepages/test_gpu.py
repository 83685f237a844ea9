"""Blocks that need a GPU: compiled and reported without one, run with one, always a leaf."""

import pytest
import torch

from livepages import running

GPU = """\
# P

```python
a = [1]
```

```python {.gpu}
a = 1 / 0
```

```python
assert a == [1]
```
"""
GOOD = GPU.replace("1 / 0", "[2]")


@pytest.fixture
def no_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture
def cuda(monkeypatch):
    """Stands in for a device: the blocks here compute nothing on it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)


def test_without_cuda_it_is_not_run_and_says_why(pages, no_cuda):
    result = pages.passes(GPU, passed=4, skipped=1)
    result.stdout.fnmatch_lines(["*pages: 2 blocks ran, 1 compiled only (GPU: no CUDA device)"])
    pages.run("docs", "-rs").stdout.fnmatch_lines(["SKIPPED*compiled only: no CUDA device"])


def test_without_cuda_a_syntax_error_fails(pages, no_cuda):
    pages.fails(GPU.replace("1 / 0", ""), "docs/p.md:8 a = SyntaxError: invalid syntax")


def test_with_cuda_it_runs_as_a_leaf(pages, cuda):
    result = pages.passes(GOOD, passed=5)
    result.stdout.fnmatch_lines(["*pages: 3 blocks ran"])


def test_with_cuda_its_failure_is_one(pages, cuda):
    result = pages.fails(GPU, "docs/p.md:8 a = 1 / 0 ZeroDivisionError")
    result.assert_outcomes(passed=4, failed=1)


def test_marker_deselects_it(pages, no_cuda):
    pages.page(GPU)
    pages.run("docs", "-m", "not gpu").assert_outcomes(passed=4, deselected=1)


def test_required_without_cuda_fails(pages, no_cuda):
    pages.page(GPU)
    result = pages.run("docs", "--require-cuda")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--require-cuda: torch sees no CUDA device on this machine"])


def test_required_with_cuda_passes_when_a_block_ran(pages, cuda):
    pages.page(GOOD)
    assert pages.run("docs", "--require-cuda").ret == 0


def test_required_but_no_block_ran_fails(pages, cuda):
    pages.page(GOOD)
    result = pages.run("docs", "--require-cuda", "-m", "not gpu")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["ERROR: --require-cuda: no block tagged .gpu ran"])


def test_gpu_output_is_not_rewritten_without_cuda(pages, no_cuda):
    text = GOOD.replace("a = [2]\n```\n", "print(2)\n```\n\n```text {.output}\nmeasured\n```\n")
    path = pages.page(text)
    assert pages.run("docs", "--update-output").ret == 0
    assert path.read_text() == text


def test_asking_for_cuda_loads_torch_only_there():
    assert running.has_cuda() is torch.cuda.is_available()
