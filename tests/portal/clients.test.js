/**
 * The programs that the page gives away: those for curl and JavaScript are run as they stand, and
 * for Python, where PYTHON_SDK is a python3 that has azure-cosmos.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { at, clipboard, editor, isThere, makeContainer, open, until, world, write } from "./harness.js";

const here = world();
const run = promisify(execFile);
const PYTHON = process.env.PYTHON_SDK;

/** A folder in which programs find the packages of these tests. */
function folder(t) {
  const made = mkdtempSync(join(tmpdir(), "dayfly-clients-"));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  symlinkSync(fileURLToPath(new URL("node_modules", import.meta.url)), join(made, "node_modules"));
  return made;
}

/** Runs a program as somebody would who has pasted it; `trust` are the lines that stand before it. */
async function pasted(cwd, language, code, trust) {
  const env = { PATH: process.env.PATH, HOME: cwd, NO_PROXY: process.env.NO_PROXY };
  if (language === "curl") return (await run("bash", ["-euc", `${trust}\n${code}`], { cwd, env })).stdout;
  const [name, by] = language === "python" ? ["program.py", PYTHON] : ["program.mjs", "node"];
  writeFileSync(join(cwd, name), code);
  return (await run("bash", ["-euc", `${trust}\n${by} ${name}`], { cwd, env })).stdout;
}

test("six lines for curl and JavaScript do what they say, by http and by https", async (t) => {
  const page = await open(t, here);
  const snippets = page.locator(".snippets");
  const choose = (name) => snippets.getByRole("button", { name, exact: true }).click();
  for (const scheme of ["http", "https"]) {
    await choose(scheme);
    const texts = () => snippets.locator("pre").allInnerTexts();
    for (const name of ["JavaScript", ...(PYTHON ? ["Python"] : [])]) {
      await choose(name);
      const begin = name === "Python" ? "# pip" : "import {";
      await until(async () => (await texts())[0].startsWith(begin) && (await texts())[0].includes(`"${scheme}://`));
      const [code, trust = ""] = await texts();
      await pasted(folder(t), name.toLowerCase(), code, trust);
      assert.equal(await isThere(here.client.database("shop").container("carts"), "1", "ann"), true, name);
      await here.client.database("shop").delete();
    }

    await choose("curl");
    await until(async () => (await texts())[0].startsWith("KEY="));
    const [lines, pem = ""] = await texts();
    const told = await pasted(folder(t), "curl", lines, pem);
    assert.match(told, /"Databases":\[\{"id":"shop"/, scheme);
    await here.client.database("shop").delete();
  }
});

for (const scheme of ["http", "https"]) {
  test(`a query is copied for curl and JavaScript, and runs: a server with ${scheme}`, async (t) => {
    const container = await makeContainer(here);
    await container.items.create({ id: "it's", pk: "x", n: 5 });
    const page = await open(t, here, "#/", { init: clipboard });
    await page.route("**/_admin/v1/server", async (route) => {
      const answer = await route.fetch();
      const told = await answer.json();
      told.endpoints = told.endpoints.filter((of) => of.scheme === scheme);
      return route.fulfill({ response: answer, json: told });
    });
    await page.goto(page.url().replace(/#.*/, at(container, "query")));
    await page.reload();
    await editor(page, "Query").waitFor();
    await write(page, "Query", `SELECT c.id, @n AS n FROM c WHERE c.id = "it's"`);
    await page.getByRole("button", { name: "Add a parameter" }).click();
    await page.getByLabel("Name of parameter 1").fill("@n");
    await page.getByLabel("Value of parameter 1, as JSON").fill("[1.5]");
    for (const [name, language, expected] of [
      ["curl", "curl", /"Documents":\[\{"id":"it's","n":\[1\.5\]\}\]/],
      ["JavaScript", "javascript", /\[ \{ id: "it's", n: \[ 1\.5 \] \} \]/],
      ...(PYTHON ? [["Python", "python", /^\{"id": "it's", "n": \[1\.5\]\}$/m]] : []),
    ]) {
      await page.evaluate(() => (window.clipboardText = undefined));
      await page.getByLabel("Copy as").selectOption(name);
      const code = await until(() => page.evaluate(() => window.clipboardText));
      assert.ok(code.includes(`${scheme}://`), code);
      // What the comments at its head say is done first.
      const trust = code.split("\n").filter((line) => /^(\/\/|#) /.test(line)).map((line) => line.replace(/^\S+ /, "")).join("\n");
      assert.equal(code.includes("emulator.pem"), scheme === "https");
      assert.match(await pasted(folder(t), language, code, trust), expected);
    }
  });
}
