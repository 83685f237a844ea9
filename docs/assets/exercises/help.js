// Hints one by one, and the solution after some attempts.

import { read, write } from "./storage.js";

const ATTEMPTS = 3; // then the solution opens without further asking

/** Wire the hints: each appears once the one before it was opened, also on later visits. */
function wireHints(root, slug) {
  const hints = [...root.querySelectorAll(".exercise-hint")];
  const show = (opened) => hints.forEach((hint, i) => (hint.hidden = i > opened));
  let opened = read(slug)?.hints ?? 0;
  show(opened);
  hints.forEach((hint, i) => {
    hint.addEventListener("toggle", () => {
      if (!hint.open || i < opened) return;
      opened = i + 1;
      write(slug, { hints: opened });
      show(opened);
    });
  });
}

/** The part of the page that helps; `update` after each change of what is saved. */
export class Help {
  #slug;
  #solution;
  #lock;
  #isAsked = false;

  constructor(root, slug) {
    this.#slug = slug;
    this.#solution = root.querySelector(".exercise-solution");
    this.#lock = root.querySelector(".exercise-lock");
    wireHints(root, slug);
    this.#lock.querySelector("button").addEventListener("click", () => this.#showAnyway());
    this.update();
  }

  update() {
    const { attempts = 0, solved = false } = read(this.#slug) ?? {};
    const isOpen = this.#isAsked || solved || attempts >= ATTEMPTS;
    this.#lock.hidden = isOpen;
    this.#solution.hidden = !isOpen;
    this.#lock.querySelector("span").textContent =
      `The solution opens after ${ATTEMPTS} attempts: ${attempts} so far.`;
  }

  #showAnyway() {
    this.#isAsked = true;
    this.update();
    this.#solution.open = true;
    this.#solution.querySelector("summary").focus();
  }
}
