// Where Python comes from: the site itself if `make site` placed it there, else Pyodide's own host.

import { PYODIDE_VERSION } from "./version.js";

const OWN = new URL("../pyodide/", import.meta.url).href;
const ELSEWHERE = `https://cdn.jsdelivr.net/pyodide/v${PYODIDE_VERSION}/full/`;

let found;

async function look() {
  const answer = await fetch(`${OWN}pyodide-lock.json`);
  return answer.ok ? OWN : ELSEWHERE;
}

/** The address of the folder that holds the runtime; asked for once. */
export function findRuntime() {
  found ??= look().catch((error) => {
    found = undefined; // offline just now: ask again next time
    throw error;
  });
  return found;
}
