// One exercise on the page: editor, Python, results and help, wired together.

import { Help } from "./help.js";
import { Results } from "./results.js";
import { Runner } from "./runner.js";
import { SavedEditor } from "./saving.js";
import { read, solvedSlugs, write } from "./storage.js";

const STATES = {
  idle: "Python idle",
  loading: "Python loading",
  ready: "Python ready",
  running: "Python running",
  failed: "Python not loaded",
};

function stateShower(root) {
  const [word, share] = [".exercise-state", ".exercise-share"].map((s) => root.querySelector(s));
  const stop = root.querySelector(".exercise-stop");
  return (state, percent) => {
    // the share is no part of the word: it would be read aloud a hundred times
    share.textContent = state === "loading" ? `${percent} %` : "";
    if (word.textContent !== STATES[state]) word.textContent = STATES[state];
    word.parentElement.dataset.state = state;
    stop.setAttribute("aria-disabled", String(state !== "loading" && state !== "running"));
  };
}

function checksFetcher() {
  const address = new URL("checks.py", location.href);
  let text;
  const fetchText = async () => {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`checks.py answered ${answer.status}`);
    return answer.text();
  };
  return () => {
    text ??= fetchText().catch((error) => {
      text = undefined;
      throw error;
    });
    return text;
  };
}

/** Bring the exercise to life; returns a function that ends all that it started. */
export function mount(root) {
  const { slug, slugs } = root.dataset;
  const find = (name) => root.querySelector(`.exercise-${name}`);
  const runner = new Runner(stateShower(root));
  const results = new Results(root);
  const help = new Help(root, slug);
  const fetchChecks = checksFetcher();
  const editor = new SavedEditor(root, slug, {
    onRun: run,
    onEdit: () => editor.markError(null),
    onOtherTab: showProgress,
  });

  function showProgress() {
    const solved = solvedSlugs();
    const all = slugs.split(" ");
    const count = all.filter((each) => solved.has(each)).length;
    find("tick").hidden = find("finish").hidden = !solved.has(slug);
    find("count").textContent =
      count === all.length
        ? `All ${count} exercises solved: that is the whole roadmap.`
        : `${count} of ${all.length} exercises solved.`;
    help.update();
  }

  async function run() {
    if (runner.isBusy) return;
    editor.markError(null);
    results.start();
    const outcome = await runner.run(editor.text(), fetchChecks, {
      onTest: (test) => results.addTest(test),
      onOutput: (text) => results.addOutput(text),
    });
    if (outcome.kind === "closed") return;
    results.finish(outcome, run);
    mark(outcome.result);
    if (outcome.result) count(outcome.result.status === "passed");
  }

  function mark(result) {
    const bad = result?.error ?? result?.tests.find((test) => test.status !== "passed");
    if (bad?.line) editor.markError(bad.line, bad.message);
  }

  function count(isSolved) {
    const { attempts = 0, solved = false } = read(slug) ?? {};
    if (!solved) write(slug, { attempts: attempts + 1, solved: isSolved });
    showProgress();
  }

  // loading before the first Run saves the reader the wait; a failure shows its own Retry
  function warm() {
    fetchChecks().catch(() => {});
    runner.warm().catch(({ kind, message }) => {
      if (kind === "load" && !runner.isBusy) results.finish({ kind, message }, warmAgain);
    });
  }

  function warmAgain() {
    results.start();
    warm();
  }

  find("editor").addEventListener("focusin", warm, { once: true });
  find("run").addEventListener("click", run);
  find("run").addEventListener("mousedown", (event) => event.preventDefault()); // keeps the focus
  find("stop").addEventListener("click", () => runner.stop());
  find("tools").hidden = false;
  showProgress();
  return () => {
    runner.close();
    editor.close();
  };
}
