"""Build the site and read a built page."""

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

ROOT = Path(__file__).parents[2]

CODE_BLOCK = re.compile(r"<pre\b[^>]*>(?:<span></span>)?<code\b[^>]*>(.*?)</code></pre>", re.DOTALL)
FORMULA = re.compile(r'<(?:span|div) class="arithmatex">(<math\b.*?</math>)</(?:span|div)>')
HEADING_ID = re.compile(r'<h[1-6] id="([^"]+)"')


def build(tool, *options, cwd):
    """Run `mkdocs build --strict` or `zensical build --strict`."""
    return subprocess.run(
        [sys.executable, "-m", tool, "build", "--strict", *options],
        cwd=cwd,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def built_pages(folder):
    """The HTML of every built page by its path below `folder`."""
    paths = sorted(folder.rglob("*.html"))
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def code_blocks(html):
    """The text of the code blocks, as a reader would copy it."""
    return [unescape(re.sub(r"<[^>]+>", "", code)) for code in CODE_BLOCK.findall(html)]


def formulas(html):
    """The MathML in the page."""
    return FORMULA.findall(html)


def heading_ids(html):
    """What links into the page can name."""
    return HEADING_ID.findall(html)
