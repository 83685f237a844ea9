"""Two palettes and one way to write a figure, so that all figures look alike."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

FOLDER = Path(__file__).parents[2] / "docs" / "assets" / "figures"
FONTS = "'Source Sans 3', 'Segoe UI', 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"


class Theme(NamedTuple):
    """The colours of one figure; text and lines have at least 4.5:1 on their page."""

    name: str
    text: str
    muted: str  # axes, ticks, guides
    main: str  # what the page recommends
    other: str  # what it is compared with
    fill: str  # areas behind lines


THEMES = (
    Theme("light", "#1f2328", "#5c6168", "#1a5da3", "#b04a0b", "#dbe7f4"),
    Theme("dark", "#e3e6ea", "#a6abb5", "#8ab8ec", "#f0a868", "#25384d"),
)


def settings(theme: Theme) -> dict[str, object]:
    """Matplotlib's settings for one theme."""
    return {
        "svg.fonttype": "none",  # text stays text: sharp, small, in the reader's own font
        "svg.hashsalt": "gradstep",  # ids are the same in every run
        "path.simplify_threshold": 0.3,
        "font.size": 11,
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": theme.muted,
        "axes.labelcolor": theme.text,
        "axes.titlecolor": theme.text,
        "axes.linewidth": 0.8,
        "xtick.color": theme.muted,
        "ytick.color": theme.muted,
        "xtick.labelcolor": theme.text,
        "ytick.labelcolor": theme.text,
        "text.color": theme.text,
        "lines.solid_capstyle": "round",
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.transparent": True,
    }


def render(draw: Callable[[Theme], Figure], theme: Theme) -> str:
    """The SVG of one figure in one theme, the same text in every run."""
    with plt.rc_context(settings(theme)):
        figure = draw(theme)
        buffer = io.StringIO()
        figure.savefig(
            buffer,
            format="svg",
            bbox_inches="tight",
            pad_inches=0.06,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
        plt.close(figure)
    lines = (line.rstrip() for line in buffer.getvalue().splitlines())
    return "\n".join(lines).replace("'DejaVu Sans'", FONTS) + "\n"
