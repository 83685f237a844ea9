"""Printed output is compared exactly, and rewritten only where it differs."""

import pytest

from livepages import outputs, site
from livepages import pages as page_data

PAGE = """\
# Out

```python
for n in range(3):
    print(n)
print()
print("end")
```

```text {.output}
0
1
2

end
```
"""


def test_right_output_passes(pages):
    pages.passes(PAGE, passed=3)


def test_wrong_output_shows_both(pages):
    pages.fails(
        PAGE.replace("\n2\n", "\n5\n"),
        'block-1, docs/p.md:3 under "Out"',
        "docs/p.md:10: the page shows (-), the block prints (+) 0 1 - 5 + 2",
        "if the new output is right: pytest 'docs/p.md' --update-output",
    )


def test_missing_and_additional_lines_fail(pages):
    pages.fails(PAGE.replace("\nend\n", "\n"), "+ end")
    pages.fails(PAGE.replace("\nend\n", "\nend\nmore\n"), "- more")
    pages.fails(PAGE.replace('print("end")\n', 'print("end ")\n'), "- end")


def test_printing_block_needs_no_output_fence(pages):
    pages.passes("```python\nprint(1)\n```\n")


def test_empty_output_fence_means_silence(pages):
    pages.passes("```python\npass\n```\n\n```text {.output}\n```\n")
    pages.fails("```python\nprint(1)\n```\n\n```text {.output}\n```\n", "+ 1")


NESTED = """\
# Nested

!!! note

    ```python
    print("a\\n\\n  b")
    ```

    ```text {.output title="x"}
    old
    ```

> ```python
> print(1)
> ```
>
> ```text {.output}
> 2
> 3
> ```

```python
print("same")
```

```text {.output}
same
```

After   with  odd space\t

```python {.raises}
raise ValueError("new")
```

```text {.output}
ValueError: old
```
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_update_rewrites_the_fences_alone(pages, end, mark):
    path = pages.page("")
    path.write_bytes((mark + NESTED.replace("\n", end)).encode())
    path.chmod(0o640)
    result = pages.run("docs", "--update-output")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*4 blocks ran, 3 outputs differed and were rewritten"])
    expected = NESTED.replace("    old\n", "    a\n\n      b\n").replace("> 2\n> 3\n", "> 1\n")
    expected = expected.replace("ValueError: old", "ValueError: new")
    assert path.read_bytes().decode() == mark + expected.replace("\n", end)
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(file.name for file in path.parent.iterdir()) == [".blocks.toml", "p.md"]
    assert pages.run("docs").ret == 0


def test_update_of_one_block_leaves_the_others(pages):
    path = pages.page(NESTED)
    pages.run("docs/p.md::block-2", "--update-output")
    assert path.read_text() == NESTED.replace("> 2\n> 3\n", "> 1\n")


def test_update_changes_nothing_when_all_is_right(pages):
    path = pages.page(PAGE)
    before = path.stat().st_mtime_ns, path.stat().st_ino
    pages.run("docs", "--update-output")
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_update_does_not_hide_an_exception(pages):
    path = pages.page(NESTED.replace("print(1)", "1 / 0"))
    result = pages.run("docs", "--update-output")
    assert result.ret == 1
    assert "> 2\n> 3" in path.read_text()


def test_update_refuses_text_that_would_end_the_fence(pages):
    path = pages.page('```python\nprint("`" * 3)\n```\n\n```text {.output}\n1\n```\n')
    before = path.read_text()
    result = pages.run("docs", "--update-output")
    result.stdout.fnmatch_lines(["docs/p.md:5: not rewritten: the output has a line that would*"])
    assert path.read_text() == before


def test_update_refuses_an_included_output(pages):
    pages.write("snippets/out.txt", "3\n")
    pages.page('```python\nprint(4)\n```\n\n```text {.output}\n--8<-- "snippets/out.txt"\n```\n')
    result = pages.run("docs", "--update-output")
    result.stdout.fnmatch_lines(["*not rewritten: the output comes from an included file*"])


def test_update_refuses_a_page_that_changed_meanwhile(pages):
    path = pages.page(PAGE)
    page = page_data.read(site.load(pages.root), path)
    path.write_text("# other\n")
    with pytest.raises(RuntimeError, match=r"docs/p\.md was changed while it was tested"):
        outputs.rewrite(path, page, {"block-1": "x"})
    assert path.read_text() == "# other\n"


def test_update_in_parallel_rewrites_every_page(pages):
    for n in range(3):
        pages.page(NESTED, f"{n}.md")
    pages.count()
    result = pages.pytester.runpytest_subprocess(
        "docs", "-n", "2", "-p", "no:hypothesispytest", "--update-output"
    )
    assert result.ret == 0
    assert all("> 1\n" in (pages.root / f"docs/{n}.md").read_text() for n in range(3))


def test_update_refuses_to_split_a_page_over_workers(pages):
    pages.page(PAGE)
    result = pages.run("docs", "--update-output", "-n", "1", "--dist", "worksteal")
    result.stderr.fnmatch_lines(["*--update-output rewrites whole pages: use --dist loadfile*"])
