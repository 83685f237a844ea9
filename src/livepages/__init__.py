"""Pages as data: what a page's blocks are, how they run, how a failure reads.

From the page to the report:

- `site`: what mkdocs.yml says; `includes`: `--8<--` resolved, each line with its places;
- `tags`: the one table of tags; `badges`: the tag as readers see it (a Markdown extension);
- `fences`: the blocks that the site renders; `house`: the form a fence must have;
- `pages`: the programs of a page, their ids, headings and outputs; `counts`: how many;
- `words`, `links`, `layout`: how the page is written; `written`: all of it in one test;
- `state`, `running`: one page in one interpreter; `launch`, `ranks`: a block in N processes;
- `results`: what happened; `outputs`: compared and rewritten; `failures`, `sources`,
  `explain`: the traceback in few lines;
- `documents`: pages for Sybil; `items`, `plugin`: for pytest;
- `record`: what a run did, and the last runs on CUDA; `boundary`: the site's table of them
  (a Markdown extension);
- `html`, `check`: the published site against the tests.
"""
