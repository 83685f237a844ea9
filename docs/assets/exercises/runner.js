// Runs the reader's code: keeps one Python at work and, once that is idle, a spare to replace it.

import { Python } from "./python.js";

export const LIMIT_MS = 5000; // then the code is interrupted, and Python lives on
export const GRACE_MS = 5000; // then the worker is ended, for it did not react
const HEAP_MB = 512; // WebAssembly's memory never shrinks: a fresh worker begins small

export class Runner {
  #tell;
  #current = null;
  #spare = null;
  #isClosed = false;
  #cache = "default";
  isBusy = false;

  /** `tell(state, percent)` hears idle, loading, ready, running, failed. */
  constructor(tell) {
    this.#tell = tell;
  }

  /** Load Python unless it is there; fails with a PythonError. */
  async warm() {
    const python = this.#take();
    try {
      await python.ready;
    } catch (error) {
      if (this.#current === python) this.#current = null;
      if (error.kind === "load") this.#cache = "reload";
      this.#tell(error.kind === "load" ? "failed" : "idle");
      throw error;
    }
    if (this.isBusy || this.#current !== python) return python;
    this.#cache = "default";
    this.#tell("ready");
    this.#prepareSpare();
    return python;
  }

  /**
   * Grade a source and return the outcome: {kind: "graded", result, isLate}, or without a result
   * {kind: "stop" | "limit" | "crash" | "load" | "closed", message}.
   */
  async run(source, fetchChecks, listener) {
    this.isBusy = true;
    try {
      const [checks, python] = await Promise.all([fetchChecks(), this.warm()]);
      return await this.#grade(python, { source, checks, limitMs: LIMIT_MS }, listener);
    } catch (error) {
      return { kind: error.kind ?? "load", message: error.message };
    } finally {
      this.isBusy = false;
      if (this.#current && !this.#isClosed) this.warm().catch(() => {});
    }
  }

  async #grade(python, job, listener) {
    this.#tell("running");
    const timer = setTimeout(() => python.end("limit"), LIMIT_MS + GRACE_MS);
    try {
      const { result, isLate, heapMB } = await python.grade(job, listener);
      if (heapMB > HEAP_MB) python.end("heap");
      return { kind: "graded", result, isLate };
    } finally {
      clearTimeout(timer);
      if (!python.isReady) this.#current = null;
      if (!this.#isClosed) this.#take();
    }
  }

  /** End what runs, or the loading. */
  stop() {
    if (this.isBusy || !this.#current?.isReady) this.#current?.end("stop");
  }

  /** End everything: the page is left. */
  close() {
    this.#isClosed = true;
    this.#tell = () => {};
    this.#current?.end("closed");
    this.#spare?.end("closed");
  }

  #take() {
    if (!this.#current) {
      this.#current = this.#spare ?? new Python(this.#cache);
      this.#spare = null;
      this.#current.onProgress = (percent) => this.#tell("loading", percent);
      if (!this.#current.isReady) this.#tell("loading", this.#current.percent);
    }
    return this.#current;
  }

  #prepareSpare() {
    if (this.#spare || this.#isClosed) return;
    const spare = new Python();
    this.#spare = spare;
    spare.ready.catch(() => {
      if (this.#spare === spare) this.#spare = null;
    });
  }
}
