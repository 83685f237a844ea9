// Results, test by test. All that comes from the reader's program is text, never HTML.

import { LIMIT_MS, GRACE_MS } from "./runner.js";

const SECONDS = LIMIT_MS / 1000;
const WORDS = { passed: "Passed", failed: "Wrong", error: "Error", stopped: "Stopped" };

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** Text whose parts in backticks are code. */
function inline(text) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, i) => (i % 2 ? make("code", "", part) : part));
}

function block(label, text) {
  const pre = make("pre", "", text);
  pre.tabIndex = 0; // it may scroll
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", label);
  return make("div", "exercise-block", make("p", "", label), pre);
}

function* outputOf({ output, dropped }) {
  if (output) yield block("Printed", output);
  if (dropped) {
    const count = dropped.toLocaleString("en");
    yield make("p", "exercise-dropped", `${count} more characters were printed; they are not kept.`);
  }
}

function* rows(test) {
  const values = {
    Call: test.call,
    Expected: test.expected,
    Got: test.got,
    "Largest difference": test.difference,
  };
  for (const [name, value] of Object.entries(values)) {
    if (value) yield make("div", "", make("dt", "", name), make("dd", "", make("code", "", value)));
  }
}

function* details(test) {
  if (test.message) yield make("p", "exercise-message", ...inline(test.message));
  const found = [...rows(test)];
  if (found.length) yield make("dl", "", ...found);
  yield* outputOf(test);
  if (test.traceback) yield block("Traceback", test.traceback);
}

function item(test, isOpen) {
  const word = make("span", "exercise-word", WORDS[test.status]);
  const summary = make("summary", "", word, " ", make("span", "", test.name));
  const element = make("details", `exercise-test ${test.status}`, summary, ...details(test));
  element.open = isOpen;
  return make("li", "", element);
}

function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** One sentence on a graded run, and the kind of it. */
function gradedVerdict({ status, error, tests }, isLate) {
  const count = (name) => tests.filter((test) => test.status === name).length;
  const bad = tests.find((test) => test.status !== "passed");
  if (status === "passed") return ["passed", `Solved: ${plural(tests.length, "test")} passed.`];
  if (isLate && (error || count("stopped"))) {
    return ["limit", `Time limit: your code ran for ${SECONDS} s and was interrupted.`];
  }
  if (error) return ["error", "Error: your code cannot be tested as it is."];
  const of = `of ${plural(tests.length, "test")}`;
  if (bad.status === "error") return ["error", `Error: your code failed in ${count("error")} ${of}.`];
  return ["failed", `Wrong answer: ${count("failed")} ${of} failed.`];
}

const ENDED = {
  limit: `Time limit: your code did not react for ${SECONDS + GRACE_MS / 1000} s, so Python was \
ended and starts afresh. Is there a sleep, or one very long NumPy call?`,
  stop: "Stopped, as you asked. Your code is as it was.",
  crash: "Error: Python itself ended on your code, and starts afresh.",
  load: "Python could not be loaded. Your code is as it was.",
};

function verdict({ kind, result, isLate }) {
  return result ? gradedVerdict(result, isLate) : [kind, ENDED[kind]];
}

/** The region of results below the editor. */
export class Results {
  #verdict;
  #body;
  #tests = make("ol", "");
  #live = make("pre", "exercise-live");
  #hasOpened = false;

  constructor(region) {
    this.#verdict = region.querySelector(".exercise-verdict");
    this.#body = region.querySelector(".exercise-details");
  }

  /** Forget the last run. */
  start() {
    this.#show("", "");
    this.#tests.replaceChildren();
    this.#live.textContent = "";
    this.#hasOpened = false;
    this.#body.replaceChildren(this.#tests, this.#live);
  }

  addOutput(text) {
    this.#live.append(text);
  }

  addTest(test) {
    this.#live.textContent = ""; // it is part of the test's own result
    const isOpen = test.status !== "passed" && !this.#hasOpened;
    this.#hasOpened ||= isOpen;
    this.#tests.append(item(test, isOpen));
  }

  /** Say how it ended; `retry` is called when Python did not load and the reader asks again. */
  finish(outcome, retry) {
    const { result, message } = outcome;
    this.#show(...verdict(outcome));
    const live = this.#live.textContent;
    this.#live.remove();
    if (result?.error) this.#body.append(...details(result.error));
    if (result) this.#body.append(...outputOf(result));
    else if (live) this.#body.append(block("Printed before it ended", live));
    if (message) this.#body.append(make("p", "exercise-message", `The reason: ${message}`));
    if (outcome.kind !== "load") return;
    const button = make("button", "", "Retry");
    button.type = "button";
    button.addEventListener("click", retry);
    this.#body.append(button);
  }

  #show(kind, text) {
    this.#verdict.dataset.kind = kind;
    this.#verdict.textContent = text;
  }
}
