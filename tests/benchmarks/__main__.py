"""Print every benchmark: `make bench`. Nothing here is a test, a busy machine fails none."""

from . import clipping, memory, updates

for part in (clipping, updates, memory):
    print(part.report())
