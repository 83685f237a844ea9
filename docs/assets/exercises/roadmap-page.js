// The roadmap with what this browser knows of its reader: ticks, progress, filters, a file.

import { filter } from "./roadmap-filter.js";
import { discard, exportAll, importAll, problems, solvedSlugs, unreadable } from "./storage.js";

function make(tag, text, properties = {}) {
  return Object.assign(document.createElement(tag), { textContent: text, ...properties });
}

function showSolved(items, solved) {
  for (const item of items) {
    const isSolved = solved.has(item.dataset.slug);
    item.dataset.state = isSolved ? "solved" : "open";
    const tick = item.querySelector(".roadmap-tick");
    tick.role = "img";
    tick.ariaLabel = isSolved ? "Solved:" : "Open:";
    tick.textContent = isSolved ? "✓" : "";
  }
}

function showProgress(root, items) {
  const number = items.filter((item) => item.dataset.state === "solved").length;
  const text = `${number} of ${items.length} solved`;
  const bar = root.querySelector("[role=progressbar]");
  bar.ariaValueNow = number;
  bar.ariaValueText = text;
  bar.style.setProperty("--solved", items.length ? number / items.length : 0);
  root.querySelector(".roadmap-count").textContent = text;
  root.querySelector(".roadmap-finish").hidden = items.length === 0 || number < items.length;
}

function offerDeletion(entry, changed) {
  const details = make("details", "");
  const remove = make("button", "Delete it", { type: "button" });
  remove.addEventListener("click", () => {
    discard(entry);
    changed();
  });
  details.append(make("summary", "Its text"), make("pre", entry.text), remove);
  return details;
}

function showProblems(list, changed) {
  const entries = problems().map((problem) => {
    const item = make("li", problem);
    const entry = unreadable().find(({ key }) => problem.includes(key));
    if (entry) item.append(offerDeletion(entry, changed));
    return item;
  });
  list.replaceChildren(...entries);
}

function save(text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  make("a", "", { href: url, download: "gradstep-exercises.json" }).click();
  setTimeout(() => URL.revokeObjectURL(url)); // once the download has begun
}

async function take(input, news, changed) {
  const [file] = input.files;
  input.value = ""; // so that the same file can be chosen again
  if (!file) return;
  try {
    const { imported, undo } = importAll(await file.text());
    const back = make("button", "Undo", { type: "button" });
    back.addEventListener("click", () => {
      undo();
      news.textContent = "Your progress is as it was before the import.";
      changed();
    });
    news.replaceChildren(`Imported ${imported} ${imported === 1 ? "exercise" : "exercises"}. `, back);
  } catch (error) {
    news.textContent = error.message;
  }
  changed();
}

/** Bring a roadmap to life; returns a function that ends it. */
export function mount(root) {
  const ending = new AbortController();
  const { signal } = ending;
  const items = [...root.querySelectorAll("[data-slug]")];
  const news = root.querySelector(".roadmap-news");
  const input = root.querySelector("input[type=file]");
  const apply = filter(root.querySelector(".roadmap-filters"), items, signal);
  const refresh = () => {
    showSolved(items, solvedSlugs());
    showProgress(root, items);
    showProblems(root.querySelector(".roadmap-problems"), refresh);
    apply();
  };
  root
    .querySelector(".roadmap-keeping button")
    .addEventListener("click", () => save(exportAll()), { signal });
  input.addEventListener("change", () => take(input, news, refresh), { signal });
  window.addEventListener("storage", refresh, { signal }); // another tab
  window.addEventListener("pageshow", refresh, { signal }); // back from the browser's own cache
  for (const part of root.querySelectorAll(":scope > :not(.roadmap-finish)")) part.hidden = false;
  refresh();
  return () => ending.abort();
}
