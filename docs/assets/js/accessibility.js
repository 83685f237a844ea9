// What the theme leaves out for people who use a keyboard or a screen reader.

const scrolling = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const scrolls = target.scrollWidth > target.clientWidth;
    if (scrolls) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});

function label(selector, text) {
  document.querySelector(selector)?.setAttribute("aria-label", text);
}

document$.subscribe(() => {
  label(".md-search", "Search");
  label(".md-progress", "Loading the page");
  label(".md-path", "Breadcrumbs");
  scrolling.disconnect();
  const wide = document.querySelectorAll("div.arithmatex, .md-typeset__scrollwrap");
  for (const element of wide) scrolling.observe(element);
});
