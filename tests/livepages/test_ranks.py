"""Blocks that several processes run: right, wrong, hanging, dying, and never left behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

RANKS = "```python {.ranks-2}\nimport os, time\nimport torch\nimport torch.distributed as dist\n\n"
RANK = "rank = dist.get_rank()\n"


def block(body, output=""):
    shown = f"\n```text {{.output}}\n{output}\n```\n" if output else ""
    return f"{RANKS}{RANK}{body}\n```\n{shown}"


def processes():
    """The command lines of every process of these tests that is still there."""
    found = subprocess.run(["ps", "-eo", "pgid,args"], capture_output=True, text=True, check=True)
    return [line for line in found.stdout.split("\n") if "livepages.ranks" in line]


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    mine = [line for line in processes() if f"livepages-{os.getpid()}-" in line]
    assert mine == []


def test_ranks_run_and_rank_zero_is_compared(pages):
    result = pages.passes(
        block(
            "total = torch.tensor([rank + 1.0])\ndist.all_reduce(total)\n"
            "print(rank, total.item())\n"
            'assert os.environ["RANK"] == str(rank) and os.environ["WORLD_SIZE"] == "2"',
            "0 3.0",
        ),
        passed=3,
    )
    result.stdout.fnmatch_lines(["*pages: 1 blocks ran"])


def test_wrong_output_of_ranks_fails(pages):
    pages.fails(block("print(dist.get_world_size())", "3"), "docs/p.md:10", "- 3 + 2")


def test_error_of_one_rank_names_the_page_line(pages):
    result = pages.fails(
        block('if rank == 1:\n    raise ValueError("boom")\ndist.barrier()'),
        "rank 1: docs/p.md:8",
        "ValueError: boom rank 0: docs/p.md:9 dist.barrier() the connection to another rank",
    )
    assert len(result.outlines) < 35


def test_failed_assert_of_a_rank_shows_its_values(pages):
    pages.fails(
        block("world = dist.get_world_size()\nassert rank == world"),
        "rank 1: docs/p.md:8 assert rank == world rank = 1 world = 2 AssertionError",
    )


def test_same_error_in_every_rank_is_shown_once(pages):
    pages.fails(block("1 / 0"), "every rank: docs/p.md:7 1 / 0 ZeroDivisionError")


def test_names_of_the_page_are_not_there_and_it_says_so(pages):
    text = "```python\nmine = 1\n```\n\n" + block("print(mine)")
    pages.fails(text, "NameError: name 'mine'", "does not see the names of its page")


def test_ranks_run_although_an_earlier_block_failed(pages):
    result = pages.fails("```python\n1 / 0\n```\n\n" + block("pass"), "ZeroDivisionError")
    result.assert_outcomes(passed=3, failed=1)


def test_hang_of_one_rank_ends_and_says_where(pages):
    pages.write(
        "pyproject.toml", (pages.root / "pyproject.toml").read_text().replace("= 20", "= 1.5")
    )
    pages.fails(
        block("while rank == 1:\n    time.sleep(0.01)\ndist.barrier()"),
        "rank 1: still running after 1.5 s (ranks_timeout)",
        "docs/p.md:8 time.sleep(0.01)",
        "docs/p.md:9 dist.barrier()",
    )


@pytest.mark.parametrize(
    ("death", "message"),
    [
        ("os._exit(3)", "exit 3"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("os._exit(0)", "exit 0"),
    ],
)
def test_death_of_one_rank_says_how(pages, death, message):
    pages.fails(
        block(f"if rank == 1:\n    {death}"),
        f"rank 1: the process ended before the block did: {message}",
    )


def test_syntax_error_starts_no_rank(pages):
    pages.fails(block("a ="), "docs/p.md:7 a = SyntaxError")


def test_warning_in_a_rank_is_an_error(pages):
    pages.fails(block('import warnings; warnings.warn("old")'), "UserWarning: old")


def test_block_may_initialise_the_group_itself(pages):
    pages.passes(
        "```python {.ranks-2}\nimport torch.distributed as dist\n\n"
        'dist.init_process_group("gloo")\nprint(dist.get_world_size())\n'
        "dist.destroy_process_group()\n```\n\n```text {.output}\n2\n```\n"
    )


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_run_leaves_no_process(pages, ending):
    marker = pages.root / "started"
    pages.page(block(f"open({str(marker)!r} + str(rank), 'w').close()\ntime.sleep(60)"))
    command = [sys.executable, "-m", "pytest", "docs", "-q", "-p", "no:cacheprovider"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    _until(lambda: (pages.root / "started0").exists() and (pages.root / "started1").exists())
    ours = f"livepages-{run.pid}-"
    assert any(ours in line for line in processes())
    run.send_signal(ending)
    run.communicate(timeout=20)
    _until(lambda: not any(ours in line for line in processes()))


def _until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_where_no_process_can_fork_it_is_compiled_and_says_why(pages, monkeypatch):
    monkeypatch.delattr(os, "fork")  # as on Windows
    text = "```python {.ranks-2}\n1 / 0\n```\n"
    result = pages.passes(text, passed=2, skipped=1)
    result.stdout.fnmatch_lines(["pages: 0 blocks ran, 1 compiled only (processes: no fork here)"])
    pages.run("docs", "-rs").stdout.fnmatch_lines(["SKIPPED*this system cannot fork processes"])
    pages.fails(text.replace("1 / 0", "a ="), "SyntaxError: invalid syntax")
