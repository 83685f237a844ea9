// Builds editor.bundle.js, and LICENSES with the terms of every package that is in it.

import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const { metafile } = await build({
  entryPoints: ["entry.js"],
  outfile: "editor.bundle.js",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "none",
  banner: { js: "/* CodeMirror 6: MIT licence, see LICENSES */" },
  metafile: true,
});

const folders = Object.keys(metafile.inputs)
  .map((path) => path.match(/^node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0])
  .filter(Boolean);

const packagesOfTerms = new Map();
for (const folder of [...new Set(folders)].sort()) {
  const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const terms = readFileSync(`${folder}/LICENSE`, "utf8").trim();
  packagesOfTerms.set(terms, [...(packagesOfTerms.get(terms) ?? []), `${name} ${version}`]);
}
const parts = [...packagesOfTerms].map(([terms, packages]) => `${packages.join("\n")}\n\n${terms}\n`);
writeFileSync("LICENSES", parts.join(`\n${"-".repeat(72)}\n\n`));
