"""What decoupled decay alone leaves of a weight, for runs over the same data."""

from matplotlib.figure import Figure
from snippets.figures.phone import subplots
from snippets.figures.theme import Theme

from gradstep import decay_factor

RATE = 0.01
RUNS = [(50, 0.05), (50, 0.1), (100, 0.1), (50, 0.2)]  # updates, decay


def path(updates: int, decay: float) -> list[float]:
    """The factor after each update, from before the first."""
    return [decay_factor([RATE] * done, decay) for done in range(updates + 1)]


def draw(theme: Theme) -> Figure:
    """All runs over the share of the data; the two that agree as a line and as marks."""
    figure, axes = subplots(3.6)
    for updates, decay in RUNS:
        factors = path(updates, decay)
        shares = [100 * done / updates for done in range(updates + 1)]
        if (updates, decay) == (50, 0.2):
            axes.plot(shares[5::5], factors[5::5], "D", color=theme.text, clip_on=False)
        else:
            main = updates == 100
            style = "-" if main else "--" if decay == 0.1 else ":"
            colour = theme.main if main else theme.other
            axes.plot(shares, factors, style, color=colour, linewidth=2.4, clip_on=False)
    ends = [("50 updates\ndecay 0.05", theme.other), ("50 updates\ndecay 0.1", theme.other)]
    ends += [("100 updates\ndecay 0.1", theme.main)]
    for (text, colour), run in zip(ends, RUNS, strict=False):
        label = {"color": colour, "weight": "bold", "linespacing": 1.2, "va": "center"}
        axes.text(104, path(*run)[-1], text, **label)
    axes.text(8, 0.905, "\u25c6 50 updates, decay 0.2", weight="bold")
    axes.set(xlim=(0, 101), ylim=(0.895, 1.002), xlabel="data seen (%)")
    axes.set_ylabel("share of the weight left")
    axes.set_yticks([0.9, 0.92, 0.94, 0.96, 0.98, 1])
    figure.tight_layout()
    return figure
