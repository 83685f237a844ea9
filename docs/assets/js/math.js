// Turns the TeX that arithmatex left in the page into formulas, on every page that
// navigation.instant shows. KaTeX is loaded only once a page needs it.

const katexFolder = new URL("../vendor/katex/", import.meta.url);
let katexLoaded;

function loadKatex() {
  katexLoaded ??= new Promise((resolve, reject) => {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = new URL("katex.min.css", katexFolder);
    const script = document.createElement("script");
    script.src = new URL("katex.min.js", katexFolder);
    script.onload = () => resolve(globalThis.katex);
    script.onerror = reject;
    document.head.append(style, script);
  });
  return katexLoaded;
}

function render(katex, element) {
  const tex = element.textContent.trim();
  const displayMode = tex.startsWith("\\[");
  katex.render(tex.slice(2, -2), element, { displayMode, throwOnError: false });
}

async function renderPage() {
  const formulas = document.querySelectorAll(".arithmatex:not(:has(.katex))");
  if (formulas.length === 0) return;
  const katex = await loadKatex();
  for (const formula of formulas) {
    if (!formula.querySelector(".katex")) render(katex, formula);
  }
}

document$.subscribe(renderPage);
