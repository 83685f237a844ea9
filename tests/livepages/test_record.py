"""A run says what it did to every block, and the site's table says the same."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from markdown import Markdown

from livepages import boundary, record, site

PAGE = """\
# The page

```python {title="On a CPU"}
a = 1
```

```python {.raises}
1 / 0
```

```python {.gpu title="On a device"}
b = a
```
"""
RANKS = "# Two\n\n```python {.ranks-2}\nimport os\n```\n"
PLACE = "<!-- execution-record from . -->"
DEVICE = "NVIDIA Test 1"


@pytest.fixture
def no_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture
def cuda(monkeypatch):
    """Stands in for a device: the blocks here compute nothing on it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: DEVICE)


@pytest.fixture
def here(pages):
    """The site of `pages`, read anew."""
    site.load.cache_clear()
    yield site.load(pages.root)
    site.load.cache_clear()


def recorded(pages, *arguments):
    result = pages.run(*(arguments or ("docs",)), "--record", "run.json")
    data = json.loads((pages.root / "run.json").read_text())
    return result, data, {block["id"].split("::")[1]: block for block in data["blocks"]}


def rows(here):
    return "\n".join(boundary.table(here, "."))


def test_every_block_is_recorded_in_order(pages, no_cuda):
    pages.page(PAGE)
    pages.page(RANKS, "ranks.md")
    result, data, blocks = recorded(pages)
    assert result.ret == 0
    assert [block["id"] for block in data["blocks"]] == sorted(b["id"] for b in data["blocks"])
    found = {(b["page"], b["kind"], b["status"], b["device"]) for b in blocks.values()}
    assert found == {
        ("docs/p.md", "python", "executed", "cpu"),
        ("docs/p.md", "raises", "executed", "cpu"),
        ("docs/p.md", "gpu", "compiled only", ""),
        ("docs/ranks.md", "ranks", "executed", "2 ranks, gloo"),
    }
    assert all(block["seconds"] >= 0 and len(block["code"]) == 12 for block in data["blocks"])


def test_run_is_dated_and_names_versions(pages, cuda):
    pages.page(PAGE)
    run = recorded(pages)[1]["run"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", run["date"])
    assert run["torch"] == torch.__version__
    assert run["python"] == sys.version.split()[0]
    assert run["cuda"] == DEVICE
    assert run["commit"] == ""  # not in a repository


@pytest.fixture
def nvidia_smi(tmp_path_factory, monkeypatch):
    """Stands in for the tool, on a machine with two devices."""
    folder = tmp_path_factory.mktemp("bin")
    asked = "--query-gpu=driver_version --format=csv,noheader"
    lines = f'#!/bin/sh\n[ "$*" = "{asked}" ] && printf "570.1.2\\n570.1.2\\n"\n'
    (folder / "nvidia-smi").write_text(lines)
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_driver_is_recorded_and_shown(pages, here, cuda, nvidia_smi):
    pages.page(PAGE)
    run = recorded(pages)[1]
    assert run["run"]["driver"] == "570.1.2"
    record.merge(here, run)
    assert record.load(here)["docs/p.md::on-a-device"].driver == "570.1.2"
    assert ", driver 570.1.2 |" in rows(here)


def test_driver_is_empty_where_the_tool_is_not(pages, cuda, monkeypatch):
    monkeypatch.setattr(record, "DRIVER", ("--no-such-question",))
    pages.page(PAGE)
    assert recorded(pages)[1]["run"]["driver"] == ""


def test_commit_is_marked_if_files_differ(pages, no_cuda):
    for command in ("init -q", "add .", "-c user.name=a -c user.email=b commit -qm one"):
        subprocess.run(["git", *command.split()], cwd=pages.root, check=True)
    assert re.fullmatch("[0-9a-f]{7,}", record._commit(pages.root))
    pages.write("conftest.py", "")
    assert re.fullmatch("[0-9a-f]{7,}-dirty", record._commit(pages.root))


def test_failed_and_blocked_are_recorded(pages, no_cuda):
    pages.page(PAGE.replace("a = 1", "a = 1 / 0"))
    _, _, blocks = recorded(pages)
    assert blocks["on-a-cpu"]["status"] == "failed"
    assert blocks["block-2"]["status"] == "not run"
    assert blocks["block-2"]["device"] == ""


def test_workers_record_into_one_file(pages):
    for name in ("a.md", "b.md", "c.md"):
        pages.page(PAGE.replace("```python {.gpu", "```python {"), name)
    pages.count()
    result = pages.pytester.runpytest_subprocess(
        "docs", "-n", "2", "-p", "no:hypothesispytest", "--record", "run.json"
    )
    assert result.ret == 0
    data = json.loads((pages.root / "run.json").read_text())
    assert len(data["blocks"]) == 9
    assert {block["status"] for block in data["blocks"]} == {"executed"}


def test_a_run_on_cuda_updates_only_its_blocks(pages, here, cuda):
    pages.page(PAGE)
    pages.page(PAGE, "q.md")
    assert record.merge(here, recorded(pages)[1]) == [
        f"docs/{name}.md::on-a-device: executed on {DEVICE}" for name in "pq"
    ]
    first = record.load(here)
    assert first.keys() == {"docs/p.md::on-a-device", "docs/q.md::on-a-device"}
    again = recorded(pages, "docs/q.md")[1]
    again["run"]["cuda"] = "another"
    record.merge(here, again)
    second = record.load(here)
    assert second["docs/p.md::on-a-device"] == first["docs/p.md::on-a-device"]
    assert second["docs/q.md::on-a-device"].device == "another"


def test_a_run_on_a_cpu_changes_nothing(pages, here, cuda, monkeypatch):
    pages.page(PAGE)
    record.merge(here, recorded(pages)[1])
    before = (here.docs / record.NAME).read_bytes()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert record.merge(here, recorded(pages)[1]) == []
    assert (here.docs / record.NAME).read_bytes() == before


def test_a_block_that_fails_on_cuda_loses_its_entry(pages, here, cuda):
    pages.page(PAGE)
    record.merge(here, recorded(pages)[1])
    pages.page(PAGE.replace("b = a", "b = a / 0"))
    assert record.merge(here, recorded(pages)[1]) == [f"docs/p.md::on-a-device: failed on {DEVICE}"]
    assert record.load(here) == {}


def test_a_block_that_is_gone_loses_its_entry(pages, here, cuda):
    pages.page(PAGE, "gone.md")
    record.merge(here, recorded(pages)[1])
    (pages.root / "docs/gone.md").unlink()
    pages.page(PAGE)
    record.merge(here, recorded(pages)[1])
    assert record.load(here).keys() == {"docs/p.md::on-a-device"}


def test_command_merges_and_refuses_a_run_without_cuda(pages, here, cuda, monkeypatch, capsys):
    pages.page(PAGE)
    recorded(pages)
    monkeypatch.chdir(pages.root)
    assert record.main(["run.json"]) == 0
    assert f"docs/p.md::on-a-device: executed on {DEVICE}" in capsys.readouterr().out
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    recorded(pages)
    assert record.main(["run.json"]) == 1
    assert "no block that ran on CUDA; nothing was changed" in capsys.readouterr().out


def test_broken_record_names_the_file_and_the_cure(pages, here):
    (here.docs / record.NAME).parent.mkdir(exist_ok=True)
    (here.docs / record.NAME).write_text("<<<<<<< ours\n")
    with pytest.raises(ValueError, match=r"docs/\.record\.json is not a record .* restore it"):
        record.load(here)


def test_table_and_run_agree_on_every_block(pages, here, no_cuda):
    pages.page(PAGE)
    pages.page(RANKS, "ranks.md")
    _, _, blocks = recorded(pages)
    text = rows(here)
    statuses = [block["status"] for block in blocks.values()]
    assert "| 2 | on a CPU, in every test run |" in text
    assert "| 1 | by several processes on a CPU, in every test run |" in text
    assert statuses.count("executed") == 2 + 1
    assert "| 1 | on CUDA only: 0 so far in the form shown; compiled in every test run |" in text
    assert statuses.count("compiled only") == 1
    assert "| block-1 | [Two](ranks.md) | by 2 processes, in every test run |" in text
    assert "| On a device | [The page](p.md) | not yet executed |" in text
    assert "    - [The page](p.md): On a CPU · block-2" in text


def test_table_tells_the_last_run_until_the_block_is_edited(pages, here, cuda):
    pages.page(PAGE)
    record.merge(here, recorded(pages)[1])
    last = rf"\d{{4}}-\d\d-\d\d on {DEVICE}, torch \S+, Python [\d.]+ \|"
    assert re.search(rf"\| On a device \| \[The page\]\(p.md\) \| {last}", rows(here))
    assert "on CUDA only: 1 so far in the form shown" in rows(here)
    pages.page(PAGE + "\nMore text.\n")
    assert "on CUDA only: 1 so far" in rows(here)  # the program is the same
    pages.page(PAGE.replace("b = a", "b = 2 * a"))
    assert re.search(rf"\| not yet in the form shown; an earlier form {last}", rows(here))
    assert "on CUDA only: 0 so far" in rows(here)


def test_ranks_on_several_devices_are_recorded(pages, here):
    pages.page(RANKS)
    _, data, _ = recorded(pages)
    data["blocks"][0]["device"] = "2 ranks, nccl"
    data["run"]["cuda"] = DEVICE
    assert record.merge(here, data) == [f"docs/p.md::block-1: executed on {DEVICE}"]
    assert "by 2 processes, in every test run; with NCCL 2" in rows(here)


def test_links_start_at_the_page_of_the_table(pages, here):
    pages.page(PAGE, "lesson/a.md")
    pages.page(PAGE, "index.md")
    text = "\n".join(boundary.table(here, "lesson"))
    assert "[The page](a.md)" in text
    assert "[The page](../index.md)" in text


def test_page_with_faults_is_named_and_stops_nothing(pages, here):
    pages.page(PAGE)
    pages.page("```py\na\n```\n", "half_done.md")
    text = rows(here)
    assert "docs/half&#95;done.md cannot be tested as it stands" in text
    assert "[The page](p.md)" in text


def render(text, root, monkeypatch):
    monkeypatch.chdir(root)
    extensions = ["tables", "pymdownx.details", "pymdownx.superfences", "livepages.boundary"]
    return Markdown(extensions=extensions).convert(text)


def test_placeholder_is_rendered_and_a_shown_one_is_not(pages, here, monkeypatch):
    pages.page(PAGE.replace("On a CPU", "1 < 2 | *a* $b$"))
    html = render(f"# T\n\n{PLACE}\n", pages.root, monkeypatch)
    assert html.count("<table>") == 2
    assert "&#60; 2 &#124; &#42;a&#42; &#36;b&#36;" in html
    assert '<a href="p.md">The page</a>' in html
    shown = render(f"```text\n{PLACE}\n```\n", pages.root, monkeypatch)
    assert "<table>" not in shown
    assert "execution-record" in shown


def test_page_with_the_placeholder_is_tested_without_reading_itself(pages):
    settings = (pages.root / "mkdocs.yml").read_text()
    pages.write("mkdocs.yml", settings + "  - livepages.boundary\n")
    pages.page(f"# Table\n\n{PLACE}\n", "table.md")
    pages.passes(PAGE.replace(".gpu ", ""), passed=6)


def test_lesson_has_the_table_and_the_record_can_be_read():
    root = Path(__file__).parents[2]
    real = site.load(root)
    record.load(real)
    assert "livepages.boundary" in real.extensions
    page = (root / "docs/lesson/sources.md").read_text().split("\n")
    assert [line for line in page if boundary.PLACEHOLDER.fullmatch(line)]


def test_boundary_loads_nothing_heavy():
    code = (
        "import sys, livepages.boundary\n"
        "heavy = {'torch', 'pytest', 'sybil', 'numpy', 'gradstep'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
