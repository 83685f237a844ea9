"""The built files: checked against the page tests, and complete without other hosts."""

import re
import subprocess
import sys

STYLE_ADDRESS = re.compile(r"""(?:url\(|@import )\s*["']?(?!data:)([^"')]+)""")


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
    assert fetched > 20  # the fonts of the text and of KaTeX
