/** The sample of docs/sdks.md, run as the page has it. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { overHttpAndHttps } from "./harness.js";

const PAGE = new URL("../../../docs/sdks.md", import.meta.url);

overHttpAndHttps((world, scheme) => {
  test("the sample of the page runs", async () => {
    const [, sample] = /```js\n(.*?)```/s.exec(await readFile(PAGE, "utf8"));
    const folder = await mkdtemp(join(tmpdir(), "dayfly-"));
    const certificate = join(folder, "emulator.pem");
    const answer = await fetch(new URL("_explorer/emulator.pem", world.server.endpoint("http")));
    await writeFile(certificate, await answer.text());

    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--input-type=module", "--eval", sample],
      {
        cwd: fileURLToPath(new URL(".", import.meta.url)),
        env: {
          ...process.env,
          COSMOS_ENDPOINT: world.server.endpoint(scheme),
          COSMOS_KEY: world.server.key,
          NODE_EXTRA_CA_CERTS: certificate,
        },
      },
    );
    assert.equal(stdout, "3\n");
    await world.client.database("shop").delete();
    await rm(folder, { recursive: true });
  });
});
