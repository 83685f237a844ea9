"""Run the programs of one page in order, each once, and keep what happened to each."""

import os
import time
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from livepages import outputs, sources
from livepages.failures import Failure, failure
from livepages.launch import run_ranks
from livepages.pages import Page, Program
from livepages.results import Result
from livepages.state import Interpreter

NO_CUDA = "compiled only: no CUDA device"
NO_FORK = "compiled only: this system cannot fork processes"
RAISES_NOTHING = "tagged .raises, but it raises nothing: make it fail as the text says, or untag it"


@dataclass(frozen=True)
class Settings:
    """How programs run, from the command line and the settings file.

    Args:
        root: the folder that paths in messages are relative to.
        ranks_timeout: seconds that all ranks of a block may take together.
    """

    root: Path
    ranks_timeout: float = 30.0


class PageRun:
    """One page in this process: its interpreter and the results so far."""

    def __init__(self, page: Page, settings: Settings) -> None:
        """Run nothing yet."""
        self.page = page
        self.settings = settings
        self.interpreter = Interpreter()
        # one stream for the page: a logging handler of one block may write in the next
        self.stdout = StringIO()
        self.results: dict[str, Result] = {}
        self.selected: set[str] = set()  # the names of the programs that this session reports

    def upto(self, program: Program) -> None:
        """Run a program after all that it may depend on, unless that was done before.

        Leaves before it run at their own position if they are to run at all, so that the order
        in which pytest asks does not matter.
        """
        for each in self.page.programs:
            needed = each is program or not each.is_leaf or each.name in self.selected
            if needed and each.name not in self.results:
                self.results[each.name] = self._timed(each)
            if each is program:
                break
        if self.selected and self.selected <= self.results.keys():
            self.interpreter.main.__dict__.clear()  # all is run: free what the programs made

    def culprit(self, program: Program) -> Program | None:
        """The earlier program whose failure keeps this one from running."""
        if program.kind == "ranks":
            return None
        for each in self.page.programs[: self.page.programs.index(program)]:
            result = self.results.get(each.name)
            stopped = result and result.status == "failed" and result.update is None
            # a wrong output leaves the names as they should be; an exception does not
            if stopped and not each.is_leaf:
                return each
        return None

    def _timed(self, program: Program) -> Result:
        started = time.perf_counter()
        result = outputs.checked(program, r) if (r := self._run(program)).status == "ran" else r
        return replace(result, seconds=time.perf_counter() - started)

    def _run(self, program: Program) -> Result:
        if culprit := self.culprit(program):
            return Result("blocked", message=(f"not run: {culprit.name} of this page failed",))
        if not program.is_leaf or (program.kind == "gpu" and has_cuda()):
            return self._execute(program)
        try:
            sources.compiled(program)
        except SyntaxError as error:
            return self._failed(failure(error, program.id))
        if program.kind == "gpu":
            return Result("compiled", message=(NO_CUDA,))
        if not hasattr(os, "fork"):  # Windows
            return Result("compiled", message=(NO_FORK,))
        return run_ranks(program, self.settings.root, self.settings.ranks_timeout)

    def _execute(self, program: Program) -> Result:
        stopped: Failure | None = None
        before = self.stdout.tell()
        with (
            redirect_stdout(self.stdout),
            self.interpreter.entered(leaf=program.is_leaf) as namespace,
        ):
            try:
                exec(sources.compiled(program), namespace)
            except KeyboardInterrupt:
                raise
            # SystemExit and pytest.skip() too: nothing but the end of the block is a pass
            except BaseException as error:
                stopped = failure(error, program.id)
        printed = self.stdout.getvalue()[before:]
        device = "cuda" if program.kind == "gpu" else "cpu"
        return replace(self._judged(program, stopped), device=device, printed=printed)

    def _judged(self, program: Program, stopped: Failure | None) -> Result:
        if program.kind == "raises":
            if stopped:
                return Result("ran", error=stopped.error)
            return Result("failed", error=RAISES_NOTHING, message=(RAISES_NOTHING,))
        return self._failed(stopped) if stopped else Result("ran")

    def _failed(self, stopped: Failure) -> Result:
        lines = sources.show(stopped, self.settings.root)
        return Result("failed", error=stopped.error, message=tuple(lines))


def has_cuda() -> bool:
    """Whether torch sees a CUDA device; loads torch, so ask only where a page needs it."""
    import torch

    return bool(torch.cuda.is_available())
