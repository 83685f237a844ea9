"""A size at which all text stays legible on a narrow phone."""

from typing import Any

from matplotlib import pyplot as plt
from matplotlib.figure import Figure


def subplots(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Panels together 4.9 inches wide: shrunk to 350 pixels the smallest text has about 12."""
    # inside `render`, which restores the settings after drawing
    plt.rcParams.update({"font.size": 12, "axes.titlesize": 13})
    return plt.subplots(rows, columns, figsize=(4.9, height), **options)
