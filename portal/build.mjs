// Builds the page into build/: a few files whose names have a hash of what is in them, and
// index.html, which names the first of them. The same sources give the same bytes everywhere.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "build");
const BASE = "/_explorer/";

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

// Style sheets that a script brings with it are texts: the page adopts them.
const result = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["chrome123", "firefox128", "safari17.5"],
  minify: true,
  charset: "ascii",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".css": "text" },
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  outdir: "build",
  metafile: true,
  logLevel: "warning",
});
const style = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/style.css" },
  minify: true,
  target: ["chrome123", "firefox128", "safari17.5"],
  entryNames: "[name]-[hash]",
  outdir: "build",
  metafile: true,
  logLevel: "warning",
});

const built = (metafile, source) =>
  basename(Object.entries(metafile.outputs).find(([, output]) => output.entryPoint === source)[0]);
const icon = readFileSync(join(here, "src/icon.svg"));
const iconName = `icon-${createHash("sha256").update(icon).digest("hex").slice(0, 8)}.svg`;
writeFileSync(join(out, iconName), icon);

const page = readFileSync(join(here, "src/index.html"), "utf8")
  .replace("{style}", BASE + built(style.metafile, "src/style.css"))
  .replace("{script}", BASE + built(result.metafile, "src/main.tsx"))
  .replace("{icon}", BASE + iconName);
writeFileSync(join(out, "index.html"), page);
