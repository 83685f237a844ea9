"""The scripts around the GPU machine: who is let in, and what becomes of the record."""

import os
import subprocess

import pytest

from .workflows import ROOT

OURS = "gradstep/gradstep/.github/workflows/gpu.yml"


def run(*command, cwd=None, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


def git(folder, *arguments):
    result = run("git", "-c", "user.name=a", "-c", "user.email=b", *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_machine_lets_in_the_workflow_of_main():
    hook = ROOT / ".github/gpu/job-started"
    assert run(hook, GITHUB_WORKFLOW_REF=f"{OURS}@refs/heads/main").returncode == 0


@pytest.mark.parametrize(
    "reference",
    [
        f"{OURS}@refs/pull/7/merge",
        f"{OURS}@refs/heads/main-2",
        f"x{OURS}@refs/heads/main",
        "gradstep/gradstep/.github/workflows/other.yml@refs/heads/main",
        "",
    ],
)
def test_machine_refuses_any_other_job(reference):
    result = run(ROOT / ".github/gpu/job-started", GITHUB_WORKFLOW_REF=reference)
    assert result.returncode == 1
    assert "This machine runs" in result.stderr


@pytest.fixture
def project(tmp_path):
    """A checkout with the script, its origin, and a `gh` that writes down how it is called."""
    script = tmp_path / "checkout/.github/gpu/propose-record"
    script.parent.mkdir(parents=True)
    script.write_bytes((ROOT / ".github/gpu/propose-record").read_bytes())
    script.chmod(0o755)
    (tmp_path / "checkout/docs").mkdir()
    (tmp_path / "checkout/docs/.record.json").write_text("old\n")
    (tmp_path / "bin").mkdir()
    gh = tmp_path / "bin/gh"
    gh.write_text('#!/bin/sh\necho "$1 $2" >> "$CALLS"\n[ "$2" = list ] && echo "$OPEN"\nexit 0\n')
    gh.chmod(0o755)
    git(tmp_path, "init", "-q", "--bare", "origin")
    git(tmp_path / "checkout", "init", "-q", "-b", "main")
    git(tmp_path / "checkout", "remote", "add", "origin", "../origin")
    git(tmp_path / "checkout", "add", ".")
    git(tmp_path / "checkout", "commit", "-qm", "one")
    return tmp_path


def propose(project, record, pull_requests="0"):
    (project / "record.json").write_text(record)
    path = f"{project / 'bin'}:{os.environ['PATH']}"
    script = project / "checkout/.github/gpu/propose-record"
    calls = str(project / "calls")
    result = run(script, project / "record.json", PATH=path, CALLS=calls, OPEN=pull_requests)
    assert result.returncode == 0, result.stderr
    return (project / "calls").read_text().splitlines() if (project / "calls").exists() else []


def test_new_record_becomes_one_pull_request(project):
    assert propose(project, "new\n") == ["auth setup-git", "pr list", "pr create"]
    assert git(project / "origin", "show", "gpu-record:docs/.record.json") == "new\n"
    assert git(project / "origin", "log", "--format=%s", "gpu-record").split("\n")[1] == "one"


def test_open_pull_request_is_brought_up_to_date(project):
    propose(project, "new\n")
    git(project / "checkout", "switch", "-q", "main")
    (project / "calls").unlink()
    assert propose(project, "newer\n", pull_requests="1") == ["auth setup-git", "pr list"]
    assert git(project / "origin", "show", "gpu-record:docs/.record.json") == "newer\n"


def test_unchanged_record_proposes_nothing(project):
    assert propose(project, "old\n") == []
