"""What happened to one program: the single record that every report is made from."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ran", "compiled", "failed", "blocked"]


@dataclass(frozen=True)
class Result:
    """What happened to one program.

    Args:
        status: ran; compiled (only); failed; blocked (not run, an earlier one failed).
        device: what it ran on: cpu, cuda, or "2 ranks".
        seconds: its own time.
        printed: what it wrote to stdout.
        error: the last line of the traceback if it stopped with an exception.
        message: the lines that say why it did not run or what is wrong with it.
        update: what its output fence should hold, None if it holds that.
    """

    status: Status
    device: str = "cpu"
    seconds: float = 0.0
    printed: str = ""
    error: str = ""
    message: tuple[str, ...] = ()
    update: str | None = None
