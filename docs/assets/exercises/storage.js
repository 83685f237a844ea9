// What a reader has done, one entry of localStorage per exercise:
//   gradstep:exercise:<slug> = {version: 1, code, attempts, hints, solved, previous?}
// `code` is null as long as it is the starter; `previous` is what a reset replaced.
// Where the browser keeps nothing, entries live as long as the page, and problems() says so.

const PREFIX = "gradstep:exercise:";
const ASIDE = "gradstep:unreadable:"; // entries that are not ours to delete
const FORMAT = "gradstep exercises";
const SLUG = /^[a-z0-9-]+$/;
const EMPTY = { version: 1, code: null, attempts: 0, hints: 0, solved: false };

const memory = new Map(); // entries that the browser did not take
const failures = new Set();

function attempt(action, otherwise) {
  try {
    return action();
  } catch (error) {
    failures.add(
      `This browser does not save your code (${error.name}). Copy it before you leave the page.`,
    );
    return otherwise;
  }
}

function getRaw(key) {
  return memory.get(key) ?? attempt(() => localStorage.getItem(key), null);
}

function setRaw(key, text) {
  const isSaved = attempt(() => (localStorage.setItem(key, text), true), false);
  if (isSaved) memory.delete(key);
  else memory.set(key, text);
  return isSaved;
}

function removeRaw(key) {
  memory.delete(key);
  attempt(() => localStorage.removeItem(key));
}

function keys(prefix) {
  const saved = attempt(() => Object.keys(localStorage), []);
  return [...new Set([...saved, ...memory.keys()])].filter((key) => key.startsWith(prefix));
}

function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value) {
  return Number.isInteger(value) && value >= 0;
}

function isEntry(value) {
  return (
    isRecord(value) &&
    value.version === 1 &&
    (value.code === null || typeof value.code === "string") &&
    isCount(value.attempts) &&
    isCount(value.hints) &&
    typeof value.solved === "boolean" &&
    (value.previous === undefined || typeof value.previous === "string")
  );
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function setAside(slug, text) {
  const isKept = attempt(
    () => (localStorage.setItem(`${ASIDE}${slug}:${Date.now()}`, text), true),
    false,
  );
  if (isKept) removeRaw(PREFIX + slug);
}

/** The entry of an exercise, or null. */
export function read(slug) {
  const text = getRaw(PREFIX + slug);
  if (text === null) return null;
  const entry = parse(text);
  if (isEntry(entry)) return entry;
  setAside(slug, text);
  return null;
}

/** Change some fields of an entry; false if the browser did not save it. */
export function write(slug, patch) {
  return setRaw(PREFIX + slug, JSON.stringify({ ...EMPTY, ...read(slug), ...patch }));
}

function entries() {
  const slugs = keys(PREFIX).map((key) => key.slice(PREFIX.length));
  return slugs.map((slug) => [slug, read(slug)]).filter(([, entry]) => entry !== null);
}

/** The exercises that are solved. */
export function solvedSlugs() {
  return new Set(entries().flatMap(([slug, entry]) => (entry.solved ? [slug] : [])));
}

/** Everything, as the text of one JSON file. */
export function exportAll() {
  const file = { format: FORMAT, version: 1, exercises: Object.fromEntries(entries()) };
  return JSON.stringify(file, null, 2);
}

/** Take the entries of an exported file; an Error says what is wrong, and nothing is changed. */
export function importAll(text) {
  const file = parse(text);
  if (file?.format !== FORMAT || file.version !== 1 || !isRecord(file.exercises)) {
    throw new Error("This is not a file that was exported here; choose the one you exported.");
  }
  const given = Object.entries(file.exercises);
  for (const [slug, entry] of given) {
    if (SLUG.test(slug) && isEntry(entry)) continue;
    throw new Error(`The entry ${JSON.stringify(slug)} of this file is damaged; nothing was taken.`);
  }
  const before = given.map(([slug]) => [PREFIX + slug, getRaw(PREFIX + slug)]);
  const undo = () => {
    for (const [key, old] of before) old === null ? removeRaw(key) : setRaw(key, old);
  };
  const isSaved = given.map(([slug, entry]) => setRaw(PREFIX + slug, JSON.stringify(entry)));
  if (isSaved.includes(false)) {
    undo();
    throw new Error("This browser has no room for the file; nothing was taken.");
  }
  return { imported: given.length, undo };
}

/** The entries that could not be read: where each is kept, and its text. */
export function unreadable() {
  return keys(ASIDE).map((key) => ({ key, slug: key.split(":")[2], text: getRaw(key) }));
}

/** Delete an unreadable entry, as the reader decided. */
export function discard({ key }) {
  removeRaw(key);
}

/** What readers should know, as sentences. */
export function problems() {
  entries(); // sets the unreadable ones aside
  const kept = unreadable().map(
    ({ key, slug }) => `What was saved of “${slug}” could not be read; it is kept as ${key}.`,
  );
  return [...failures, ...kept];
}

/** Hear of changes that another tab made to an exercise; returns a function that ends it. */
export function watch(slug, changed) {
  const hear = ({ key }) => {
    if (key === PREFIX + slug || key === null) changed(read(slug));
  };
  window.addEventListener("storage", hear);
  return () => window.removeEventListener("storage", hear);
}
