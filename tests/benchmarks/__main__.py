"""Print every benchmark: `make bench`. Nothing here is a test, a busy machine fails none."""

from . import clipping

print(clipping.report())
