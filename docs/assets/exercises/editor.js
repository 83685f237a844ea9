// The reader's code: the page's own textarea, and CodeMirror in its place once that has come.

const BUNDLE = new URL("../vendor/codemirror/editor.bundle.js", import.meta.url).href;
const SIGNS_OF_LIFE = ["pointermove", "pointerdown", "touchstart", "keydown", "scroll", "focusin"];

/** Wait until the reader does anything at all: a page that is only opened stays light. */
function reader(signal) {
  return new Promise((resolve) => {
    for (const sign of SIGNS_OF_LIFE) {
      document.addEventListener(sign, resolve, { once: true, passive: true, signal });
    }
  });
}

/** Scroll `inside` alone, never the page: readers look at the results now. */
function scrollTo(element, inside) {
  const [target, box] = [element, inside].map((each) => each.getBoundingClientRect());
  if (target.bottom > box.bottom) inside.scrollTop += target.bottom - box.bottom;
  if (target.top < box.top) inside.scrollTop -= 2 * target.height + box.top - target.top;
}

export class Editor {
  #area;
  #rich = null;
  #options;
  #life = new AbortController();

  /** `onChange()` and `onRun()` hear of the reader; `help` is the id of how to leave it by keys. */
  constructor(area, options) {
    this.#area = area;
    this.#options = options;
    area.addEventListener("input", () => options.onChange());
    area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      options.onRun();
    });
    this.#enrich(this.#life.signal);
  }

  async #enrich(signal) {
    await reader(signal);
    const bundle = await import(BUNDLE).catch(() => null); // the textarea does without
    if (!bundle || signal.aborted) return;
    const hadFocus = document.activeElement === this.#area;
    this.#rich = bundle.createEditor({
      ...this.#options,
      parent: this.#area.parentElement,
      doc: this.#area.value,
      cursor: this.#area.selectionStart,
    });
    this.#area.hidden = true;
    if (hadFocus) this.#rich.focus();
  }

  text() {
    return this.#rich ? this.#rich.text() : this.#area.value;
  }

  setText(text) {
    if (this.#rich) this.#rich.setText(text);
    else this.#area.value = text;
  }

  /** Mark a line, or none if it is null. */
  markError(line, message = "") {
    this.#rich?.markError(line, message);
    const box = this.#area.parentElement;
    const mark = box.querySelector(".cm-error-message");
    if (mark) scrollTo(mark, box.querySelector(".cm-scroller"));
  }

  focus() {
    (this.#rich ?? this.#area).focus();
  }

  destroy() {
    this.#life.abort();
    this.#rich?.destroy();
  }
}
