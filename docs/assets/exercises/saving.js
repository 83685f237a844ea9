// Keeps the editor and what is saved the same: each change, reset with undo, other tabs.

import { Editor } from "./editor.js";
import { addNotice } from "./notices.js";
import { discard, problems, read, unreadable, watch, write } from "./storage.js";

/** The editor of an exercise, whose text is never lost. */
export class SavedEditor {
  #slug;
  #notices;
  #editor;
  #starter;
  #offered = null; // the notice that can bring a text back
  #told = new Set();
  #life = new AbortController();

  /** `onEdit()` and `onRun()` hear of the reader, `onOtherTab()` of changes that it made. */
  constructor(root, slug, { onRun, onEdit, onOtherTab }) {
    const area = root.querySelector("textarea");
    this.#slug = slug;
    this.#notices = root.querySelector(".exercise-notices");
    this.#starter = area.defaultValue;
    area.value = this.#saved();
    this.#editor = new Editor(area, {
      label: area.getAttribute("aria-label"),
      help: area.getAttribute("aria-describedby"),
      onRun,
      onChange: () => this.#save(onEdit),
    });
    this.#askBeforeReset(root);
    this.#followOtherTabs(onOtherTab);
    this.#offerUndoOfReset();
    this.reportProblems();
  }

  text() {
    return this.#editor.text();
  }

  markError(line, message) {
    this.#editor.markError(line, message);
  }

  close() {
    this.#life.abort();
    this.#editor.destroy();
  }

  /** Say what storage has to say, each thing once. */
  reportProblems() {
    for (const problem of problems()) {
      if (this.#told.has(problem)) continue;
      this.#told.add(problem);
      const entry = unreadable().find(({ key }) => problem.includes(key));
      if (!entry) addNotice(this.#notices, problem);
      else if (entry.slug === this.#slug) this.#reportUnreadable(problem, entry);
    }
  }

  #reportUnreadable(problem, entry) {
    addNotice(this.#notices, problem, [
      ["Put its text into the editor", () => this.#replace(entry.text)],
      ["Delete it", () => discard(entry)],
    ]);
  }

  #saved() {
    return read(this.#slug)?.code ?? this.#starter;
  }

  #write(text, more = {}) {
    const code = text === this.#starter ? null : text;
    if (!write(this.#slug, { code, ...more })) this.reportProblems();
  }

  #save(onEdit) {
    const text = this.text();
    if (text === this.#saved()) return; // set by this page, not by the reader
    this.#offered?.remove();
    this.#write(text, { previous: undefined });
    onEdit();
  }

  /** Replace the text by another one, which is saved first. */
  #replace(text, more) {
    this.#write(text, more);
    this.#editor.setText(text);
  }

  #askBeforeReset(root) {
    const dialog = root.querySelector(".exercise-dialog");
    const signal = this.#life.signal;
    const button = root.querySelector(".exercise-reset");
    button.addEventListener("click", () => dialog.showModal(), { signal });
    const close = () => dialog.returnValue === "reset" && this.#reset();
    dialog.addEventListener("close", close, { signal });
    dialog.addEventListener("cancel", () => (dialog.returnValue = ""), { signal });
  }

  #reset() {
    const text = this.text();
    if (text === this.#starter) return;
    this.#replace(this.#starter, { previous: text });
    this.#offerUndoOfReset();
  }

  #offerUndoOfReset() {
    const previous = read(this.#slug)?.previous;
    if (previous === undefined) return;
    this.#offer("Your code was reset to the starter.", "Undo", previous);
  }

  #offer(message, label, text) {
    this.#offered?.remove();
    const undo = () => this.#replace(text, { previous: undefined });
    this.#offered = addNotice(this.#notices, message, [[label, undo]]);
  }

  #followOtherTabs(onOtherTab) {
    const { signal } = this.#life;
    let notice = null;
    const follow = () => {
      onOtherTab();
      const [mine, theirs] = [this.text(), this.#saved()];
      if (mine === theirs) return;
      this.#editor.setText(theirs);
      if (notice?.isConnected) return; // it has the text from before the first change
      this.#offer("The code was changed in another tab, and is shown here.", "Undo", mine);
      notice = this.#offered;
    };
    signal.addEventListener("abort", watch(this.#slug, follow));
    // a tab that slept heard nothing
    const wake = () => document.visibilityState === "visible" && follow();
    document.addEventListener("visibilitychange", wake, { signal });
    window.addEventListener("pageshow", wake, { signal });
  }
}
