"""Pages as data: what a page's blocks are, how they run, how a failure reads."""
