"""Everything that happens to a gradient between `backward()` and `step()`."""
