/** The samples of docs/sdks.md and of our helper, run as the pages have them. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { overHttpAndHttps } from "./harness.js";

const HERE = fileURLToPath(new URL(".", import.meta.url));

/** What the first sample of a page prints. */
async function run(page, more = {}) {
  const text = await readFile(new URL(`../../../${page}`, import.meta.url), "utf8");
  const [, sample] = /```js\n(.*?)```/s.exec(text);
  const env = { ...process.env, ...more };
  // Otherwise a sample that is a test reports to the runner of this one.
  delete env.NODE_TEST_CONTEXT;
  const node = [process.execPath, ["--input-type=module", "--eval", sample], { cwd: HERE, env }];
  return (await promisify(execFile)(...node)).stdout;
}

overHttpAndHttps((world, scheme) => {
  test("the sample of the page runs", async () => {
    const folder = await mkdtemp(join(tmpdir(), "dayfly-"));
    const certificate = join(folder, "emulator.pem");
    const answer = await fetch(new URL("_explorer/emulator.pem", world.server.address("http")));
    await writeFile(certificate, await answer.text());

    const stdout = await run("docs/sdks.md", {
      COSMOS_ENDPOINT: world.server.address(scheme),
      COSMOS_KEY: world.server.key,
      NODE_EXTRA_CA_CERTS: certificate,
    });
    assert.equal(stdout, "3\n");
    await world.client.database("shop").delete();
    await rm(folder, { recursive: true });
  });
});

test("the sample of the helper runs", async () => {
  assert.match(await run("helpers/js/README.md"), /^# pass 1$/m);
});
