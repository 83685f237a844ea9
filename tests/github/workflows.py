"""The rules of this repository's workflows."""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github/workflows"
PINNED = re.compile(r"[\w-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
# what no workflow may do: events with secrets that a stranger can cause
FORBIDDEN = {"pull_request_target", "workflow_run", "issue_comment", "issues", "discussion"}
GPU_EVENTS = {"push", "schedule", "workflow_dispatch"}
# more than reading the repository, which every job may
RIGHTS = {
    ("site", "deploy"): {"pages": "write", "id-token": "write"},
    ("gpu", "propose"): {"contents": "write", "pull-requests": "write"},
    ("release", "publish"): {"id-token": "write"},
}
PLAIN = {"exit", "[[", "ls"}  # what any shell has


def faults(name: str, text: str) -> Iterator[str]:
    """Yield every rule that a workflow breaks."""
    workflow = yaml.safe_load(text)
    events = workflow[True]  # YAML takes `on` for true
    yield from (f"the event {event} is open to strangers" for event in FORBIDDEN & events.keys())
    if workflow.get("permissions") != {}:
        yield "a workflow begins with `permissions: {}`; a job names what it needs"
    if not workflow.get("concurrency", {}).get("group"):
        yield "no concurrency group: two runs would disturb each other"
    if "secrets." in text or "secrets:" in text:
        yield "a secret is used; none is needed"
    for line in re.findall(r"uses: (.*)", text):
        if not PINNED.fullmatch(line):
            yield f"{line} is not pinned; write owner/name@commit # v1.2.3"
    for key, job in workflow["jobs"].items():
        yield from (f"{key}: {fault}" for fault in _job_faults(name, key, job, events))


def _job_faults(name: str, key: str, job: dict, events: dict) -> Iterator[str]:
    allowed = RIGHTS.get((name, key), {"contents": "read"})
    if job.get("permissions", {}) not in (allowed, {}):
        yield f"permissions are {job['permissions']}, allowed are {allowed}"
    if "timeout-minutes" not in job:
        yield "no timeout-minutes: it may hang for six hours"
    if "self-hosted" in job["runs-on"]:
        yield from _own_machine_faults(job, events)
    for step in job["steps"]:
        uses = step.get("uses", "").partition("@")[0]
        settings = step.get("with", {})
        if uses == "actions/checkout" and settings.get("persist-credentials") is not False:
            yield "the token stays in the checkout; set persist-credentials: false"
        if settings.get("cache") and settings.get("cache-dependency-path") != "constraints.txt":
            yield "the cache is not keyed by constraints.txt"
        yield from command_faults(step.get("run", ""))


def _own_machine_faults(job: dict, events: dict) -> Iterator[str]:
    if more := events.keys() - GPU_EVENTS:
        yield f"our machine is started by {', '.join(sorted(more))}"
    if events.get("push") != {"branches": ["main"]}:
        yield "our machine runs pushes to main only"
    if job.get("environment") != "${{ inputs.commit && 'gpu-pull-request' || 'gpu' }}":
        yield "a commit of a pull request needs the environment gpu-pull-request, which asks first"
    if job.get("permissions") != {"contents": "read"}:
        yield "our machine may only read"


def command_faults(script: str) -> Iterator[str]:
    """Yield every command that a developer could not type here."""
    for line in script.splitlines():
        words = shlex.split(line)
        if words[0] == "make":
            targets = [word for word in words[1:] if "=" not in word]
            unknown = [target for target in targets if target not in make_targets()]
            yield from (f"the Makefile has no target {target}" for target in unknown)
        elif words[0].startswith(".venv/bin/"):
            if not (Path(sys.executable).parent / Path(words[0]).name).exists():
                yield f"{words[0]} is not installed by make .venv/test"
        elif words[0].startswith("."):
            if not (ROOT / words[0]).is_file():
                yield f"{words[0]} is not in the repository"
        elif words[:2] != ["python", "-m"] and words[0] not in PLAIN:
            yield f"{line} is neither make nor a tool of this repository"


def make_targets() -> set[str]:
    """Every target of the Makefile."""
    return set(re.findall(r"^([\w./-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
