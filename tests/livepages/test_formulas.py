"""The formulas of the site: MathML made of TeX when it is built."""

import pytest
from markdown import Markdown

from livepages.formulas import FormulaError, mathml


def rendered(text):
    extensions = ["pymdownx.arithmatex", "livepages.formulas", "tables"]
    options = {"pymdownx.arithmatex": {"generic": True}}
    return Markdown(extensions=extensions, extension_configs=options).convert(text)


def test_inline_formula_is_mathml_in_its_sentence():
    html = rendered("A $x_1$ here.")
    assert html.startswith('<p>A <span class="arithmatex"><math><')
    assert "<msub><mi>x</mi><mn>1</mn></msub>" in html
    assert html.endswith("</math></span> here.</p>")


def test_display_formula_stands_alone():
    html = rendered("Before\n\n$$\n\\frac{a}{b}\n$$\n\nAfter")
    assert '<div class="arithmatex"><math display="block"' in html
    assert "<mfrac><mi>a</mi><mi>b</mi></mfrac>" in html


def test_formula_in_a_table_and_dollars_that_are_none():
    html = rendered("| a |\n|---|\n| $a$ and $5 |")
    assert html.count("<math") == 1
    assert "$5" in html


def test_text_in_a_formula_stays_text():
    assert "<b>" not in mathml(r"\text{<b>x</b>}", False)


@pytest.mark.parametrize("tex", [r"\frac{1", r"\foo", "x^2^3", "", r"\left( x"])
def test_build_stops_at_what_is_no_tex(tex):
    with pytest.raises(FormulaError, match=r"^no formula: .*; write what Temml knows$"):
        mathml(tex, False)
