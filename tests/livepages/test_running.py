"""Programs run in page order, each once, whatever pytest asks for."""

import pytest

GOOD = """\
# Top

```python
a = 1
```

## Sub

```python title="Second one"
b = a + 1
```

```python
assert b == 2
```
"""


def test_good_page_passes(pages):
    result = pages.passes(GOOD, passed=5)
    result.stdout.fnmatch_lines(["*pages: 3 blocks ran*"])


def test_ids_are_titles_or_ordinals(pages):
    pages.page(GOOD)
    result = pages.run("docs", "--collect-only", "-q")
    expected = ["docs/p.md::page", "docs/p.md::block-1", "docs/p.md::second-one"]
    assert [*expected, "docs/p.md::block-3"] == result.outlines[1:5]


def test_ids_do_not_move_with_lines(pages):
    pages.page("A new line.\n\n" + GOOD)
    assert pages.run("docs/p.md::block-3").ret == 0


def test_same_title_twice_gets_two_ids(pages):
    block = '```python title="Twice"\npass\n```\n\n'
    pages.page(block + block)
    result = pages.run("docs", "--collect-only", "-q")
    result.stdout.fnmatch_lines(["docs/p.md::twice", "docs/p.md::twice-2"])


@pytest.mark.parametrize(
    "choice",
    [("docs/p.md::block-3",), ("docs", "-k", "block-3"), ("docs", "--deselect=docs/p.md::block-1")],
)
def test_one_block_runs_what_comes_before_it(pages, choice):
    pages.page(GOOD)
    result = pages.run(*choice)
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] >= 1


def test_failure_names_page_heading_line_and_block(pages):
    result = pages.fails(
        GOOD.replace("b == 2", "b == 3"),
        'block-3, docs/p.md:13 under "Top > Sub"',
        "docs/p.md:14 assert b == 3 b = 2 AssertionError",
    )
    assert "sybil" not in "\n".join(result.outlines).replace("plugins", "")
    assert len(result.outlines) < 25


def test_last_failed_runs_what_comes_before_it(pages):
    pages.page(GOOD.replace("b == 2", "b == 3"))
    pages.run()
    pages.page(GOOD)
    result = pages.run("docs", "--lf")
    result.assert_outcomes(passed=1)


def test_blocks_after_a_failure_are_not_run_and_do_not_pass(pages):
    result = pages.fails(GOOD.replace("a = 1", "a = 1 / 0"), "ZeroDivisionError: division by zero")
    result.assert_outcomes(passed=2, failed=1, skipped=2)
    result.stdout.no_fnmatch_line("*NameError*")
    result.stdout.fnmatch_lines(["*1 failed, 2 not run*"])


def test_reason_of_blocks_that_did_not_run(pages):
    pages.page(GOOD.replace("a = 1", "a = 1 / 0"))
    result = pages.run("docs", "-rs")
    result.stdout.fnmatch_lines(["SKIPPED*docs/p.md*not run: block-1 of this page failed"])


def test_chosen_block_fails_with_the_failure_of_an_unchosen_one(pages):
    pages.page(GOOD.replace("a = 1", "a = 1 / 0"))
    result = pages.run("docs/p.md::block-3")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["docs/p.md:4", "*a = 1 / 0", "ZeroDivisionError*", "block-3: not run: block-1*"]
    )


def test_missing_output_does_not_keep_later_blocks_from_running(pages):
    pages.page("```python\npass\n```\n```text {.output}\n2\n```\n```python\n1\n```\n")
    pages.run().assert_outcomes(passed=3, failed=1)


def test_page_may_remove_the_folder_it_stands_in(pages):
    pages.passes(
        "```python\nimport os, tempfile\nwith tempfile.TemporaryDirectory() as folder:\n"
        "    os.chdir(folder)\n```\n\n```python\nos.environ\n```\n"
    )


def test_wrong_output_does_not_keep_later_blocks_from_running(pages):
    result = pages.fails(
        "```python\na = 1\nprint(a)\n```\n```text {.output}\n2\n```\n```python\na\n```\n"
    )
    result.assert_outcomes(passed=3, failed=1)


REVERSED = """\
import pytest
pytest_plugins = ["livepages.plugin"]

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items.reverse()
    items.sort(key=lambda item: hash(item.name[::-1]) % 7)
"""


def test_order_of_tests_does_not_matter(pages):
    body = "```python\nseen.append({})\n```\n\n"
    start = "```python\nimport random\nseen = []\nrandom.seed(1)\n```\n\n"
    end = "```python\nassert seen == [0, 1, 2, 3]\nfirst = random.random()\n```\n"
    check = "```python\nimport random as r\nassert first == r.Random(1).random()\n```\n"
    for name in ("a.md", "b.md"):
        pages.page(start + "".join(body.format(n) for n in range(4)) + end + check, name)
    pages.write("conftest.py", REVERSED)
    result = pages.run()
    result.assert_outcomes(passed=17)


def test_parallel_run_keeps_pages_together(pages):
    for n in range(6):
        pages.page(GOOD, f"{n}.md")
    pages.count()
    result = pages.pytester.runpytest_subprocess("docs", "-n", "2", "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=25)
    result.stdout.fnmatch_lines(["*pages: 18 blocks ran"])


@pytest.mark.parametrize("way_out", ["raise SystemExit(0)", '__import__("pytest").skip("no")'])
def test_only_the_end_of_a_block_is_a_pass(pages, way_out):
    result = pages.fails(f"```python\n{way_out}\n```\n", "docs/p.md:2")
    result.assert_outcomes(failed=1, passed=2)


def test_warning_is_an_error(pages):
    pages.fails("```python\nimport warnings\nwarnings.warn('old')\n```\n", "UserWarning: old")


def test_syntax_error_names_the_line(pages):
    pages.fails("```python\na = 1\nb =\n```\n", "docs/p.md:3 b = SyntaxError: invalid syntax")


def test_printed_lines_are_shown_with_a_failure(pages):
    pages.fails("```python\nprint('clue')\n1 / 0\n```\n", "it had printed: clue")


def test_a_handler_of_one_block_prints_in_the_next(pages):
    pages.passes(
        '```python\nimport logging, sys\nlog = logging.Logger("p")\n'
        'log.addHandler(logging.StreamHandler(sys.stdout))\nlog.error("a")\n```\n\n'
        '```text {.output}\na\n```\n\n```python\nlog.error("b")\n```\n\n'
        "```text {.output}\nb\n```\n"
    )


def test_classes_of_a_page_can_be_pickled_and_inspected(pages):
    pages.passes(
        """\
        ```python
        import copy, inspect, pickle
        from dataclasses import dataclass

        @dataclass
        class Point:
            x: int

        def double(n):
            return 2 * n

        assert __name__ == "__main__"
        assert pickle.loads(pickle.dumps(Point(1))) == Point(1)
        assert inspect.getsource(double) == "def double(n):\\n    return 2 * n\\n"
        ```
        """
    )


def test_a_page_starts_fresh_and_leaves_no_trace(pages):
    pages.page(
        '```python\nimport os, random\nos.environ["LEFT"] = "1"\nrandom.seed(0)\n```\n', "a.md"
    )
    pages.page('```python\nimport os\nassert "LEFT" not in os.environ\n```\n', "b.md")
    assert pages.run().ret == 0


def test_state_of_torch_is_that_of_the_page(pages):
    import torch

    pages.page(
        """\
        ```python
        import torch
        torch.manual_seed(5)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.set_num_threads(1)
        ```

        ```python
        assert torch.initial_seed() == 5 and torch.ones(1).dtype == torch.float64
        assert not torch.is_grad_enabled()
        ```
        """,
        "a.md",
    )
    pages.page(
        """\
        ```python
        import torch
        assert torch.initial_seed() != 5 and torch.ones(1).dtype == torch.float32
        assert torch.is_grad_enabled()
        ```
        """,
        "b.md",
    )
    before = torch.get_rng_state(), torch.get_num_threads()
    assert pages.run().ret == 0
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == torch.get_num_threads()


def test_windows_line_ends_and_byte_order_mark(pages):
    path = pages.page("")
    path.write_bytes(("\ufeff" + GOOD).replace("\n", "\r\n").encode())
    pages.run().assert_outcomes(passed=5)


def test_front_matter_keeps_line_numbers(pages):
    pages.fails("---\ntitle: x\n---\n\n```python\n1 / 0\n```\n", "docs/p.md:6")


def test_caught_assertion_is_as_at_home(pages):
    pages.passes(
        "```python\ntry:\n    assert 1 == 2\nexcept AssertionError as e:\n    print(repr(e))\n```\n"
        "```text {.output}\nAssertionError()\n```\n"
    )


def test_python_files_beside_pages_are_not_imported(pages):
    pages.write("docs/exercise/starter.py", "raise RuntimeError('imported')\n")
    pages.passes(GOOD, passed=5)


def test_raises_that_does_not_raise_fails(pages):
    pages.fails("```python {.raises}\n1\n```\n", "tagged .raises, but it raises nothing")


RAISES = """\
```python {{.raises}}
raise ValueError("no")
```

```text {{.output}}
ValueError: {}
```
"""


def test_raises_passes_with_its_message(pages):
    pages.passes(
        RAISES.format("no"),
        passed=3,
    )


def test_raises_with_another_message_fails(pages):
    pages.fails(
        RAISES.format("yes"),
        "- ValueError: yes + ValueError: no",
    )


def test_sybil_evaluates_a_page_without_pytest(pages):
    from livepages import documents, site
    from livepages.running import Settings

    path = pages.page(GOOD)
    sybil = documents.PageSybil(site.load(pages.root), Settings(pages.root))
    document = sybil.parse(path)
    for example in document:
        example.evaluate()
    assert document.namespace["b"] == 2
    assert [result.status for result in document.run.results.values()] == ["ran"] * 3


@pytest.mark.parametrize(
    ("claim", "values"),
    [
        ("a == 2", ["a = 1"]),
        ("a == 1 and b == [2]", ["b = [1]"]),
        ("sum(b) > 5", ["sum(b) = 1"]),
        ("all(b == [2] for _ in b)", []),
        ("not isinstance(a, int)", ["a = 1", "int = <class 'int'>"]),
        ("0 < a < c", ["a = 1", "c = 1.0"]),
    ],
)
def test_failed_assert_shows_its_values(pages, claim, values):
    pages.fails(
        f"```python\na, b, c = 1, [1], 1.0\nassert {claim}\n```\n", *values, "AssertionError"
    )


def test_failed_assert_that_would_hold_now_shows_nothing(pages):
    text = "```python\nn = []\nassert n.append(1) or len(n) > 1\n```\n"
    result = pages.fails(text, "AssertionError")
    result.stdout.no_fnmatch_line("* = *")


def test_message_of_an_assert_is_shown_as_it_is(pages):
    result = pages.fails("```python\na = 1\nassert a == 2, 'so'\n```\n", "AssertionError: so")
    result.stdout.no_fnmatch_line("*a = 1")
