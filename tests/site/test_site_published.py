"""The built files: checked against the page tests, and complete without other hosts."""

import json
import re
import subprocess
import sys
from html import unescape

from built_site import ROOT, built_pages, formulas

STYLE_ADDRESS = re.compile(r"""(?:url\(|@import )\s*["']?(?!data:|%23)([^"')]+)""")


def test_published_pages_pass_the_check_of_livepages(site, sources):
    command = [sys.executable, "-m", "livepages.check", str(site)]
    result = subprocess.run(command, cwd=sources, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_styles_fetch_only_files_of_the_site(site):
    fetched = 0
    for sheet in site.rglob("*.css"):
        names = STYLE_ADDRESS.findall(sheet.read_text())
        missing = [name for name in names if not (sheet.parent / name).is_file()]
        assert missing == [], sheet
        fetched += len(names)
    assert fetched > 4  # the fonts of the text and of formulas


def test_every_formula_is_mathml_in_characters_of_our_font(site):
    style = (ROOT / "docs/assets/css/fonts.css").read_text()
    [listed] = re.findall(r"unicode-range:([^;]+);", style)
    ranges = [part.strip().removeprefix("U+").partition("-") for part in listed.split(",")]
    font = {
        n for first, _, last in ranges for n in range(int(first, 16), int(last or first, 16) + 1)
    }
    count = 0
    for path, html in built_pages(site).items():
        found = formulas(html)
        assert len(found) == html.count('class="arithmatex"'), path
        count += len(found)
        for formula in found:
            text = unescape(re.sub(r"<[^>]+>", "", formula))
            assert {c for c in text if ord(c) not in font} == set(), (path, formula)
    assert count > 300


def test_search_finds_what_pages_say_and_not_what_they_are_made_of(site):
    texts = [
        doc["text"] for doc in json.loads((site / "search/search_index.json").read_text())["docs"]
    ]
    assert any("One bad batch" in text for text in texts)
    for made_of in ("Keep my code", "Next exercise:", "<math", r"\lVert"):
        assert [text for text in texts if made_of in text] == [], made_of
