"""A strict build is clean, and each kind of broken page makes it fail."""

import pytest
from built_site import ROOT, build


def build_page(folder, text):
    """Build a one-page site with the real settings, strictly."""
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs/index.md").write_text(text)
    settings = f"INHERIT: {ROOT}/mkdocs.yml\nnav: [index.md]\nwatch: []\n"
    (folder / "mkdocs.yml").write_text(settings)
    (folder / "snippets").symlink_to(ROOT / "snippets")
    return build("mkdocs", cwd=folder)


def test_real_site_builds_strictly(site):
    assert (site / "index.html").is_file()
    assert (site / "sitemap.xml").is_file()


def test_sound_page_builds_strictly(tmp_path):
    result = build_page(tmp_path, "# One\n\n[here](#one)\n")
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("[x](missing.md)", "'missing.md', but the target is not found", id="link"),
        pytest.param("[x](#missing)", "there is no such anchor on this page", id="anchor"),
        pytest.param("[x](/gradstep/)", "contains an absolute link", id="absolute-link"),
        pytest.param("![x](missing.svg)", "'missing.svg', but the target is not", id="figure"),
        pytest.param("[x][gradstep.missing]", "'gradstep.missing'", id="reference"),
        pytest.param('--8<-- "missing.py"', "'missing.py'", id="include"),
    ],
)
def test_broken_page_fails_the_build(tmp_path, text, complaint):
    result = build_page(tmp_path, text)
    assert result.returncode != 0
    assert complaint in result.stdout


def test_page_without_navigation_fails_the_build(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/forgotten.md").write_text("# Forgotten\n")
    result = build_page(tmp_path, "# One\n")
    assert result.returncode != 0
    assert "not included in the" in result.stdout
    assert "forgotten.md" in result.stdout
