"""The pages notice wrong implementations and wrong pages: a sample of `make mutants`."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.mutants.planting import TABLES, Mutant, in_copy, load, mutants, run

SAMPLE = [load(table)[0] for table in TABLES if table != "build"]  # tests/site builds pages
HARMLESS = Mutant(
    table="a test",
    name="harmless",
    idea="a comment decides nothing",
    file="src/gradstep/_cpu.py",
    right="# a division rounds, too",
    wrong="# it rounds, too",
    page="docs/lesson/recall.md",
)


@pytest.mark.parametrize("mutant", SAMPLE, ids=lambda mutant: mutant.name)
def test_pages_kill_mutant(mutant):
    verdict = run(mutant)
    assert verdict.killed, f"{mutant.idea}: {verdict.how}"


def test_mutants_are_many_and_each_can_be_planted():
    found = mutants()
    of_pages = sum(mutant.table in {"pages", "build"} for mutant in found)
    assert len(found) - of_pages >= 60
    assert of_pages >= 40
    assert not [name for name, count in Counter(m.name for m in found).items() if count > 1]
    faults = [fault for mutant in found if (fault := mutant.fault())]
    assert not faults, "\n\n".join(faults)


def test_copy_is_what_is_imported():
    status, text = in_copy(("-c", "import gradstep, livepages; print(gradstep, livepages)"))
    assert status == 0
    assert text.count("from 'src/") == 2


def test_unnoticed_mutant_survives():
    verdict = run(HARMLESS)
    assert (verdict.killed, verdict.how) == (False, "exit 0")


def test_mutant_that_cannot_run_is_not_killed():
    verdict = run(replace(HARMLESS, wrong="no comment"))
    assert not verdict.killed
    assert "does not even run" in verdict.how


@pytest.mark.parametrize(
    "right", ["no such text", "gradients", HARMLESS.wrong], ids=["never", "often", "no difference"]
)
def test_text_that_is_not_there_once_is_an_error(right):
    verdict = run(replace(HARMLESS, right=right))
    assert not verdict.killed
    assert "a test.toml, harmless: the right text must stand exactly once" in verdict.how
