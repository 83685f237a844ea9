"""A size at which all text stays legible on a narrow phone."""

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def subplots(height: float) -> tuple[Figure, Axes]:
    """One panel, 4.9 inches wide: shrunk to 350 pixels its smallest text has about 12."""
    # inside `render`, which restores the settings after drawing
    plt.rcParams.update({"font.size": 12, "axes.titlesize": 13})
    return plt.subplots(figsize=(4.9, height))
