"""What is wrong with a page as it is written, whether its programs run or not."""

from livepages import counts, formulas, layout, links, words
from livepages.pages import Page
from livepages.site import Site


def fault_of(site: Site, page: Page) -> str | None:
    """Say everything, each with its line and its cure; None if nothing is wrong."""
    checks = (words, links, formulas, layout)
    found = [fault for check in checks for fault in check.faults(site, page)]
    lines = [str(fault) for fault in sorted(found, key=lambda fault: fault.places)]
    lines += filter(None, [counts.fault_of(site, page)])
    return "\n".join(lines) or None
