// Python, in a module worker of its own: boots once, then grades what it is sent.
//   in:  boot {base, total, cache} · grade {id, source, checks, limitMs}
//   out: progress {loaded, total} · ready · failed {message}
//        output {id, text} · test {id, test} · graded {id, result, isLate, heapMB}
//        crashed {id, message}

const GRADER = [
  "grader",
  "grader_judge",
  "grader_learner",
  "grader_loops",
  "grader_run",
  "grader_values",
];
const AGAIN_MS = 250; // after an interrupt that came to nothing
const OUTPUT_MS = 50; // a line at a time would drown the page

let python;
let gradeInPython;
let deadline = Infinity;
let isLate = false; // the limit was reached

// Pyodide reads element 0 of its interrupt buffer as it runs, 2 meaning SIGINT. A getter that
// answers by the clock interrupts endless loops without SharedArrayBuffer, so without headers
// that GitHub Pages cannot send. It is not documented: tests/browser would notice its end.
const interrupts = {
  get 0() {
    const now = performance.now();
    if (now < deadline) return 0;
    deadline = now + AGAIN_MS;
    isLate = true;
    return 2;
  },
  set 0(value) {},
};

const textOf = (error) => String(error?.message ?? error);

function tellFailure(message) {
  postMessage({ type: "failed", message });
}

/** Report the bytes of all that is fetched, and failures, some of which loadPyodide would sit out. */
function watchLoading(total, cache) {
  let loaded = 0;
  let told = 0;
  async function count(body) {
    for await (const part of body) {
      loaded += part.length;
      if (loaded - told < total / 100) continue;
      told = loaded;
      postMessage({ type: "progress", loaded, total });
    }
  }
  const { fetch } = self;
  self.fetch = async (address, options) => {
    try {
      const response = await fetch(address, { ...options, cache });
      if (!response.ok) throw new Error(`the server answered ${response.status}`);
      count(response.clone().body).catch(() => {});
      return response;
    } catch (error) {
      tellFailure(`${String(address).split("/").at(-1)}: ${textOf(error)}`);
      throw error;
    }
  };
  const { instantiateStreaming } = WebAssembly;
  WebAssembly.instantiateStreaming = (...source) => {
    const made = instantiateStreaming.apply(WebAssembly, source);
    made.catch((error) => tellFailure(textOf(error)));
    return made;
  };
}

async function fetchText(name) {
  const response = await fetch(new URL(name, import.meta.url));
  return response.text();
}

async function boot({ base, total, cache }) {
  watchLoading(total, cache);
  const sources = Promise.all(GRADER.map((name) => fetchText(`./${name}.py`)));
  sources.catch(() => {}); // awaited below
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  python = await loadPyodide({ indexURL: base });
  // not as an option of loadPyodide: it never ends when a package fails before Python has begun
  await python.loadPackage("numpy", { messageCallback() {}, errorCallback() {} });
  python.runPython("import numpy"); // loadPackage does not fail for a package that did not come
  for (const [i, source] of (await sources).entries()) {
    python.FS.writeFile(`/home/pyodide/${GRADER[i]}.py`, source);
  }
  gradeInPython = python.runPython(`
import json, signal
import grader

# outside the learner's code, for which the grader has a handler of its own
signal.signal(signal.SIGINT, signal.SIG_IGN)

def grade(source, checks, on_test, on_output):
    return json.dumps(grader.grade(source, checks, lambda test: on_test(json.dumps(test)), on_output))

grade`);
  python.setInterruptBuffer(interrupts);
  postMessage({ type: "ready" });
}

function outputOf(id) {
  let parts = [];
  let sent = 0;
  const flush = () => {
    if (parts.length) postMessage({ type: "output", id, text: parts.join("") });
    parts = [];
    sent = performance.now();
  };
  const write = (text) => {
    parts.push(text);
    if (performance.now() - sent > OUTPUT_MS) flush();
  };
  return { write, flush };
}

function grade({ id, source, checks, limitMs }) {
  const output = outputOf(id);
  const tell = (test) => {
    output.flush();
    postMessage({ type: "test", id, test: JSON.parse(test) });
  };
  isLate = false;
  deadline = performance.now() + limitMs;
  try {
    const result = JSON.parse(gradeInPython(source, checks, tell, output.write));
    const heapMB = python._module.HEAPU8.length / 2 ** 20;
    postMessage({ type: "graded", id, result, isLate, heapMB });
  } catch (error) {
    postMessage({ type: "crashed", id, message: textOf(error) });
  } finally {
    deadline = Infinity;
  }
}

self.addEventListener("message", ({ data }) => {
  if (data.type === "grade") grade(data);
  else boot(data).catch((error) => tellFailure(textOf(error)));
});
