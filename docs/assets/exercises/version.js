// The one place that names the Python runtime; livepages.runtime reads the version here, too.

export const PYODIDE_VERSION = "0.27.7";

// of the files that a worker fetches (WebAssembly, standard library, NumPy), unpacked:
// what "loading 41 %" is of
export const RUNTIME_BYTES = 15_527_000;
