"""A page cannot silently stop testing."""

import pytest

from livepages import counts

PAGE = "```python\nprint(1)\n```\n\n```text {.output}\n1\n```\n\n```python {.raises}\n1 / 0\n```\n"


def test_update_writes_the_table(pages):
    pages.page(PAGE)
    pages.page("# Nothing to run\n", "a/b.md")
    result = pages.run("docs", "--update-counts", count=False)
    result.assert_outcomes(passed=5)
    table = (pages.root / "docs" / counts.NAME).read_text()
    assert '"a/b.md" = {}\n"p.md" = { output = 1, python = 1, raises = 1 }\n' in table


def test_vanished_block_fails(pages):
    pages.passes(PAGE)
    pages.page(PAGE.replace("```python\nprint", "```text\nprint").replace("{.output}", ""))
    result = pages.run(count=False)
    result.stdout.fnmatch_lines(
        [
            "docs/p.md has 1 raises, the table says 1 output, 1 python, 1 raises; "
            "if the page is right: pytest docs/p.md --update-counts"
        ]
    )
    assert result.ret == 1


def test_page_without_an_entry_fails_and_names_the_flag(pages):
    pages.page(PAGE)
    result = pages.run(count=False)
    result.stdout.fnmatch_lines(["docs/p.md is not in the table*pytest docs/p.md --update-counts"])


def test_deleted_page_in_the_table_fails(pages):
    pages.page(PAGE, "gone.md")
    pages.passes(PAGE)
    (pages.root / "docs/gone.md").unlink()
    result = pages.run(count=False)
    result.stdout.fnmatch_lines(["no such page: gone.md; if that is right: pytest docs --update*"])
    assert result.ret == 1


def test_table_that_a_merge_has_broken_says_so_and_is_written_anew(pages):
    pages.passes(PAGE)
    table = pages.root / "docs" / counts.NAME
    before = table.read_text()
    table.write_text("<<<<<<< ours\n" + before)
    result = pages.run(count=False)
    result.stdout.fnmatch_lines([".blocks.toml: *; write it anew: pytest docs --update-counts"])
    assert pages.run("docs", "--update-counts", count=False).ret == 0
    assert table.read_text() == before


def test_counting_runs_nothing(pages):
    pages.page("```python\n1 / 0\n```\n")
    pages.run("docs/p.md::page").assert_outcomes(passed=1)


def test_page_with_faults_keeps_its_entry(pages):
    pages.passes(PAGE)
    before = (pages.root / "docs" / counts.NAME).read_text()
    pages.page(PAGE.replace("```python {.raises}", "```py"))
    result = pages.run("docs", "--update-counts", count=False)
    assert result.ret == 1
    assert (pages.root / "docs" / counts.NAME).read_text() == before


@pytest.mark.parametrize("folder", [".hidden", "a/.b"])
def test_hidden_pages_are_not_pages(pages, folder):
    pages.page("```python\n1 / 0\n```\n", f"{folder}/x.md")
    pages.passes(PAGE)
    assert folder not in (pages.root / "docs" / counts.NAME).read_text()
