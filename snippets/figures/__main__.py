"""Draw every figure in both themes into docs/assets/figures."""

from snippets.figures import FIGURES
from snippets.figures.theme import FOLDER, THEMES, render

for name, draw in FIGURES.items():
    for theme in THEMES:
        path = FOLDER / f"{name}-{theme.name}.svg"
        path.write_text(render(draw, theme))
        print(path.relative_to(FOLDER.parents[2]), f"{path.stat().st_size / 1024:.0f} KB")
