"""The pytest plugin: options, collection, what a run prints at its end."""

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from livepages.items import PageFile, TableFile

CUDA_FLAG = "--require-cuda"
WHY = {"gpu": "GPU: no CUDA device", "ranks": "processes: no fork here"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the page tests."""
    group = parser.getgroup("pages")
    group.addoption(
        "--update-output", action="store_true", help="rewrite the output fences of pages"
    )
    group.addoption(
        "--update-counts", action="store_true", help="rewrite the table of blocks per page"
    )
    group.addoption(
        CUDA_FLAG, action="store_true", help="fail unless a block tagged .gpu ran on a CUDA device"
    )
    group.addoption(
        "--record", metavar="FILE", help="write what happened to each block to FILE, as JSON"
    )
    parser.addini("ranks_timeout", "seconds for all ranks of a block", type="float", default=30.0)


def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let xdist keep the blocks of a page together; runs after xdist has read its options."""
    options = config.option
    if getattr(options, "numprocesses", None) and options.dist == "load":
        options.dist = "loadfile"
    if options.update_output and getattr(options, "dist", "no") not in {"no", "loadfile"}:
        raise pytest.UsageError("--update-output rewrites whole pages: use --dist loadfile")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a run that requires CUDA where there is none, and start the harness."""
    # one broken page must not keep the others from being tested
    config.option.continue_on_collection_errors = True
    config.pluginmanager.register(Pages(config), "livepages")
    if config.getoption("require_cuda") and not hasattr(config, "workerinput"):
        from livepages.running import has_cuda

        if not has_cuda():
            raise pytest.UsageError(f"{CUDA_FLAG}: torch sees no CUDA device on this machine")


class Pages:
    """One run of the page tests."""

    def __init__(self, config: pytest.Config) -> None:
        """Load nothing yet: most runs of other tests need none of it."""
        self.config = config
        self.files: list[PageFile] = []
        self.records: list[dict[str, Any]] = []

    @property
    def is_worker(self) -> bool:
        """Whether xdist started this process."""
        return hasattr(self.config, "workerinput")

    @cached_property
    def collectors(self) -> Any:
        """The site and its Sybil."""
        from livepages import site
        from livepages.documents import PageSybil
        from livepages.running import Settings

        found = site.load(self.config.rootpath)
        settings = Settings(self.config.rootpath, float(self.config.getini("ranks_timeout")))
        return found, PageSybil(found, settings)

    def pytest_sessionstart(self) -> None:
        """Count the blocks anew before they are compared with the table."""
        if self.config.getoption("update_counts") and not self.is_worker:
            from livepages import counts

            counts.update(self.collectors[0])

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> "PageFile | TableFile | None":
        """Collect pages and the table of their counts."""
        if file_path.suffix not in {".md", ".toml"}:
            return None
        if not (self.config.rootpath / "mkdocs.yml").exists():
            return None
        from livepages import items

        return items.collect(file_path, parent, *self.collectors)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark the blocks that need a GPU, so that -m can choose them."""
        for item in items:
            if getattr(getattr(item, "program", None), "kind", None) == "gpu":
                item.add_marker(pytest.mark.gpu)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Tell each page which of its blocks this run reports."""
        blocks: list[Any] = [item for item in session.items if hasattr(item, "program")]
        for item in blocks:
            item.run.selected.add(item.program.name)
        self.files = list({item.path: item.parent for item in blocks}.values())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result of each block, also of those that ran in a worker."""
        if report.when == "call":
            properties: list[tuple[str, Any]] = report.user_properties
            found = [value for name, value in properties if name == "livepages"]
            self.records += [{"id": report.nodeid, **value} for value in found]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write outputs and the record; fail a run that required CUDA and did not use it."""
        if self.config.getoption("update_output"):
            _write_outputs(self.files)
        if (file := self.config.getoption("record")) and not self.is_worker:
            from livepages import record

            run = record.of_run(self.records, self.config.rootpath)
            record.write(self.config.invocation_params.dir / file, run)
        if self.config.getoption("require_cuda") and not self.is_worker and not self._used_cuda():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _used_cuda(self) -> bool:
        return any(r["kind"] == "gpu" and r["device"] == "cuda" for r in self.records)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many blocks ran, and how many did not and why."""
        if self.records:
            updates = bool(self.config.getoption("update_output"))
            terminalreporter.write_line(summary(self.records, updates))
        if self.config.getoption("require_cuda") and not self._used_cuda():
            terminalreporter.write_line(f"ERROR: {CUDA_FLAG}: no block tagged .gpu ran", red=True)


def _write_outputs(files: "list[PageFile]") -> None:
    from livepages import outputs

    for file in files:
        run = file.document.run
        if texts := outputs.updates(run.page, run.results, run.selected):
            outputs.rewrite(file.path, run.page, texts)


def summary(records: list[dict[str, Any]], updates: bool = False) -> str:
    """One line about all blocks of a run."""
    differ = [record for record in records if record["update"] is not None]
    number = Counter(record["status"] for record in records)
    rewritten = len(differ) if updates else 0
    parts = [f"{number['ran'] + rewritten} blocks ran"]
    parts += [f"{rewritten} outputs differed and were rewritten"] if rewritten else []
    compiled = Counter(record["kind"] for record in records if record["status"] == "compiled")
    parts += [f"{n} compiled only ({WHY[kind]})" for kind, n in sorted(compiled.items())]
    if failed := number["failed"] - rewritten:
        parts.append(f"{failed} failed")
    if number["blocked"]:
        parts.append(f"{number['blocked']} not run")
    return "pages: " + ", ".join(parts)
