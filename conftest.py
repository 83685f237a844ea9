"""Wires the page tests into pytest: `pytest docs` runs every program on every page."""

pytest_plugins = ["livepages.plugin", "pytester"]

# programs of exercises lie beside their pages; their own tests import them, doctest must not
collect_ignore_glob = ["docs/*.py"]
