"""Workflows are short, pinned, allowed little, and call what a developer would type."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from .workflows import FOLDER, ROOT, command_faults, faults, make_targets

WORKFLOWS = {file.stem: file.read_text("utf-8") for file in sorted(FOLDER.iterdir())}
SCHEMAS = [
    ("github-workflows", ".github/workflows/*.yml", 5),
    ("dependabot", ".github/dependabot.yml", 1),
    ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml", 1),
    ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml", 3),
    ("citation-file-format", "CITATION.cff", 1),
]


def tool(name, *arguments):
    command = [str(Path(sys.executable).parent / name), *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def zizmor(*paths):
    return tool("zizmor", "--offline", "--no-progress", "--pedantic", "--strict-collection", *paths)


def test_workflows_are_few_and_short():
    assert WORKFLOWS.keys() == {"gpu", "preview", "release", "site", "tests"}
    assert all(len(text.splitlines()) <= 110 for text in WORKFLOWS.values())


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflow_keeps_every_rule(name):
    assert list(faults(name, WORKFLOWS[name])) == []


def test_zizmor_finds_nothing():
    result = zizmor(".github")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "No findings" in result.stdout + result.stderr


def test_zizmor_finds_what_is_dangerous(tmp_path):
    file = tmp_path / "a.yml"
    file.write_text(WORKFLOWS["preview"].replace("pull_request:", "pull_request_target:"))
    result = zizmor(file)
    assert result.returncode != 0
    assert "dangerous-triggers" in result.stdout


@pytest.mark.parametrize(("schema", "pattern", "number"), SCHEMAS, ids=[s[0] for s in SCHEMAS])
def test_files_keep_their_schema(schema, pattern, number):
    files = sorted(ROOT.glob(pattern))
    assert len(files) == number
    result = tool("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files)
    assert result.returncode == 0, result.stdout + result.stderr


def test_schema_refuses_a_misspelt_key(tmp_path):
    file = tmp_path / "a.yml"
    file.write_text(WORKFLOWS["tests"].replace("runs-on:", "run-on:"))
    schema = "vendor.github-workflows"
    assert tool("check-jsonschema", "--builtin-schema", schema, file).returncode == 1


@pytest.mark.parametrize(
    ("name", "old", "new", "fault"),
    [
        ("tests", "  pull_request:\n", "  pull_request_target:\n", "open to strangers"),
        ("tests", "permissions: {}", "permissions: write-all", "begins with `permissions: {}`"),
        ("tests", "contents: read", "contents: write", "allowed are {'contents': 'read'}"),
        ("tests", "group: tests-${{ github.ref }}", "group: ''", "no concurrency group"),
        ("tests", "timeout-minutes: 40\n", "name: x\n", "no timeout-minutes"),
        ("tests", "run: make test\n", "run: make tests\n", "the Makefile has no target tests"),
        ("tests", "run: make test\n", "run: curl x\n", "curl x is neither make nor a tool"),
        ("tests", "persist-credentials: false", "fetch-depth: 1", "the token stays"),
        ("tests", "path: constraints.txt", "path: pyproject.toml", "not keyed by constraints.txt"),
        ("tests", " # v7.0.1", "", "is not pinned"),
        ("preview", "ubuntu-latest", "[self-hosted, cuda]", "our machine is started by pull_req"),
        ("gpu", "    branches: [main]\n", "", "our machine runs pushes to main only"),
        ("gpu", "inputs.commit && 'gpu-pull-request' || 'gpu'", "'gpu'", "which asks first"),
        ("gpu", "      contents: read", "      contents: write", "our machine may only read"),
        ("gpu", "${{ github.token }}", "${{ secrets.KEY }}", "a secret is used"),
        ("release", "id-token: write", "contents: write", "allowed are {'id-token': 'write'}"),
    ],
)
def test_broken_rule_is_told(name, old, new, fault):
    assert old in WORKFLOWS[name]
    found = list(faults(name, WORKFLOWS[name].replace(old, new)))
    assert any(fault in each for each in found), found


def test_same_action_has_the_same_pin_everywhere():
    uses = re.findall(r"uses: (\S+)@(\S+ # \S+)", "".join(WORKFLOWS.values()))
    assert len(dict(uses)) == len(set(uses)) > 5


def test_one_check_stands_for_all_jobs():
    jobs = yaml.safe_load(WORKFLOWS["tests"])["jobs"]
    green = jobs.pop("green")
    assert green["name"] == "All green"
    assert green["if"] == "always()"
    assert set(green["needs"]) == jobs.keys()
    (step,) = green["steps"]
    for result in ("failure", "cancelled", "skipped"):
        assert f"contains(needs.*.result, '{result}')" in step["if"]
    assert step["run"] == "exit 1"


def test_matrix_has_the_oldest_and_newest_of_each():
    jobs = yaml.safe_load(WORKFLOWS["tests"])["jobs"]
    rows = jobs["versions"]["strategy"]["matrix"]["include"]
    settings = (ROOT / "pyproject.toml").read_text()
    assert 'requires-python = ">=3.11"' in settings
    assert '"torch>=2.9"' in settings
    assert {row["python"] for row in rows} == {"3.11", "3.12", "3.13", "3.14"}
    assert {row["torch"] for row in rows} == {"torch==2.9.1", "torch"}
    assert jobs["systems"]["strategy"]["matrix"]["system"] == ["macos-latest", "windows-latest"]


def test_hooks_before_a_commit_call_what_a_developer_would_type():
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert local["repo"] == "local"  # nothing is fetched
    entries = [hook["entry"] for hook in local["hooks"]]
    assert "make lint" in entries
    assert [fault for entry in entries for fault in command_faults(entry)] == []


def test_gpu_target_requires_cuda_and_keeps_the_record():
    recipe = (ROOT / "Makefile").read_text().partition("\ngpu-test:")[2].partition("\n\n")[0]
    assert "--require-cuda --record .venv/record.json" in recipe
    assert "gpu-test" in make_targets()
    steps = yaml.safe_load(WORKFLOWS["gpu"])["jobs"]["test"]["steps"]
    (upload,) = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    assert upload["if"] == "always()"
    assert upload["with"]["path"].split() == [".venv/record.json", "docs/.record.json"]


def test_every_file_has_an_owner():
    lines = (ROOT / ".github/CODEOWNERS").read_text().splitlines()
    assert "* @gradstep/maintainers" in lines
