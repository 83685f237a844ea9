"""What a run did to every block, as JSON, and what has run on CUDA, kept in the repository.

`pytest docs --record FILE` writes the first. `python -m livepages.record FILE` takes from it what
ran on CUDA into docs/.record.json; from that and the pages `boundary` makes the site's table. No
other block is kept there: every test run executes it or fails, so a date would only go stale.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from livepages import site as sites
from livepages.pages import PageError, Program, read
from livepages.site import Site

NAME = ".record.json"  # hidden, so that it is not published
ABOUT = "The last run of each block on CUDA. Written by: python -m livepages.record FILE"
DRIVER = ("--query-gpu=driver_version", "--format=csv,noheader")
STATUS = {"ran": "executed", "compiled": "compiled only", "failed": "failed", "blocked": "not run"}


@dataclass(frozen=True)
class CudaRun:
    """The last run of one block on CUDA.

    Args:
        code: the fingerprint of what ran; an edited block has another one.
        date: in UTC, year first.
        device: the name of the device.
        torch: version.
        python: version.
        commit: of the repository, marked if files differed from it; empty outside git.
        driver: NVIDIA's, empty if its tool was not there to ask.
    """

    code: str
    date: str
    device: str
    torch: str
    python: str
    commit: str = ""
    driver: str = ""


def code_of(program: Program) -> str:
    """The fingerprint of a block's code, includes resolved."""
    return sha256(program.fence.text.encode()).hexdigest()[:12]


def of_run(results: Iterable[dict[str, Any]], root: Path) -> dict[str, Any]:
    """Describe a run: when, where and with what, and what happened to each of its blocks."""
    return {"run": _circumstances(root), "blocks": sorted(map(_block, results), key=_id)}


def _block(result: dict[str, Any]) -> dict[str, Any]:
    ran = result["status"] == "ran"
    return {
        "id": result["id"],
        "page": result["id"].partition("::")[0],
        "kind": result["kind"],
        "status": STATUS[result["status"]],
        "device": result["device"] if ran or result["status"] == "failed" else "",
        "seconds": round(result["seconds"], 3),
        "code": result["code"],
    }


def _id(block: dict[str, Any]) -> str:
    name: str = block["id"]
    return name


def _circumstances(root: Path) -> dict[str, str]:
    import torch

    cuda = torch.cuda.is_available()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(root),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "cuda": torch.cuda.get_device_name() if cuda else "",
        "driver": _said(root, "nvidia-smi", *DRIVER).partition("\n")[0] if cuda else "",
    }


def _commit(root: Path) -> str:
    describe = ("describe", "--always", "--dirty", "--exclude=*")
    return _said(root, "git", "--no-optional-locks", *describe)


def _said(folder: Path, *command: str) -> str:
    """What a command prints, nothing if it fails or is not there."""
    try:
        found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()


def load(site: Site) -> dict[str, CudaRun]:
    """Read the runs on CUDA by the id of their blocks, none if there is no file yet.

    Raises:
        ValueError: if the file cannot be read, as after a merge.
    """
    file = site.docs / NAME
    if not file.exists():
        return {}
    try:
        blocks = json.loads(file.read_text("utf-8"))["blocks"]
        return {name: CudaRun(**run) for name, run in blocks.items()}
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{site.relative(file)} is not a record ({error}); restore it from git, and add a run: "
            "python -m livepages.record FILE"
        ) from error


def merge(site: Site, record: dict[str, Any]) -> list[str]:
    """Take what a recorded run did on CUDA into the file; return a line about each block.

    A block that the run did not execute keeps its entry, one that failed loses it, and so does
    one that no page has any more.
    """
    run, kept, lines = record["run"], _present(site, load(site)), []
    for block in record["blocks"]:
        if not {"cuda", "nccl"} & set(block["device"].replace(",", "").split()):
            continue
        if block["status"] == "executed":
            versions = {name: run[name] for name in ("torch", "python", "commit", "driver")}
            kept[block["id"]] = CudaRun(block["code"], run["date"][:10], run["cuda"], **versions)
        else:
            kept.pop(block["id"], None)
        lines.append(f"{block['id']}: {block['status']} on {run['cuda']}")
    if lines:
        blocks = {name: asdict(entry) for name, entry in sorted(kept.items())}
        write(site.docs / NAME, {"about": ABOUT, "blocks": blocks})
    return lines


def _present(site: Site, runs: dict[str, CudaRun]) -> dict[str, CudaRun]:
    """Only the runs of blocks that pages still have; a page with faults keeps all of its own."""
    ids, unreadable = set(), set()
    for path in site.pages():
        try:
            ids |= {program.id for program in read(site, path).programs}
        except PageError:
            unreadable.add(site.relative(path))
    return {name: r for name, r in runs.items() if name in ids or name.split("::")[0] in unreadable}


def write(file: Path, data: dict[str, Any]) -> None:
    """Write JSON that a reader and git can follow; whoever reads it never sees half of it."""
    beside = file.with_name(f"{file.name}.{os.getpid()}")
    beside.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")
    beside.replace(file)


def main(arguments: list[str]) -> int:
    """Merge the record of one run into the repository's; return 1 if it has nothing from CUDA."""
    if len(arguments) != 1:
        print("usage: python -m livepages.record FILE, the FILE of pytest docs --record FILE")
        return 2
    record = json.loads(Path(arguments[0]).read_text("utf-8"))
    lines = merge(sites.load(Path.cwd()), record)
    print("\n".join(lines) or f"{arguments[0]} has no block that ran on CUDA; nothing was changed")
    return 0 if lines else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
