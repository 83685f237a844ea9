// One worker with Python in it, seen from the page.

import { findRuntime } from "./runtime.js";
import { RUNTIME_BYTES } from "./version.js";

/** Why a worker gave no answer; `kind` is "load", "crash", or the reason it was ended for. */
export class PythonError extends Error {
  constructor(kind, message = "") {
    super(message);
    this.kind = kind;
  }
}

export class Python {
  #worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  #started = Promise.withResolvers();
  #job = null;
  #ended = null;
  #lastId = 0;
  isReady = false;
  percent = 0;
  onProgress = () => {};

  /** `cache` is that of fetch; "reload" makes up for a file that was cached damaged. */
  constructor(cache = "default") {
    this.ready = this.#started.promise;
    this.ready.catch(() => {}); // those who wait for it hear of it
    this.#worker.addEventListener("message", ({ data }) => this.#hear(data));
    this.#worker.addEventListener("error", (event) => {
      this.#fail("load", event.message || "the worker's script did not come");
    });
    findRuntime().then(
      (base) => this.#worker.postMessage({ type: "boot", base, total: RUNTIME_BYTES, cache }),
      (error) => this.#fail("load", error.message),
    );
  }

  /** Grade a source; the promise fails with a PythonError if the worker ends first. */
  grade(job, { onTest, onOutput }) {
    if (this.#ended) return Promise.reject(this.#ended);
    this.#job = { ...Promise.withResolvers(), id: ++this.#lastId, onTest, onOutput };
    this.#worker.postMessage({ type: "grade", id: this.#job.id, ...job });
    return this.#job.promise;
  }

  /** Stop whatever runs, at once. */
  end(kind) {
    this.#fail(kind, "");
  }

  #fail(kind, message) {
    this.#worker.terminate();
    this.isReady = false;
    this.#ended = new PythonError(kind, message);
    this.#started.reject(this.#ended);
    this.#job?.reject(this.#ended);
  }

  #hear(data) {
    if (data.type === "progress") {
      this.percent = Math.min(99, Math.floor((100 * data.loaded) / data.total));
      this.onProgress(this.percent);
    } else if (data.type === "ready") {
      this.isReady = true;
      this.#started.resolve();
    } else if (data.type === "failed") {
      this.#fail("load", data.message);
    } else if (data.type === "crashed") {
      this.#fail("crash", data.message);
    } else if (data.type === "test") {
      this.#job.onTest(data.test);
    } else if (data.type === "output") {
      this.#job.onOutput(data.text);
    } else if (data.type === "graded") {
      this.#job.resolve(data);
    }
  }
}
