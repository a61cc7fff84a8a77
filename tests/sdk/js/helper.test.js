/** The helper for tests: its clock, its reset, and its end. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { CosmosClient } from "@azure/cosmos";
import { startDayfly } from "dayfly-test";

let dayfly;
before(async () => {
  dayfly = await startDayfly();
});
after(() => dayfly.stop());

/** Runs code with the helper, in a process of its own. */
function run(code, env = process.env) {
  const text = `import { startDayfly } from "dayfly-test"; const dayfly = await startDayfly(); ${code}`;
  const cwd = fileURLToPath(new URL(".", import.meta.url));
  return promisify(execFile)(process.execPath, ["--input-type=module", "--eval", text], {
    cwd,
    env,
    timeout: 60_000,
  });
}

test("the clock stands still and moves by spans", async () => {
  for (const [span, seconds] of Object.entries({
    0: 0, 90: 90, "45s": 45, "30m": 1800, "12h": 43200, "90d": 7776000, "2w": 1209600,
  })) {
    const before = await dayfly.now();
    await dayfly.advance(span);
    assert.equal(await dayfly.now(), before + seconds, span);
  }
});

test("what is no span moves nothing", async () => {
  const before = await dayfly.now();
  for (const span of [-1, 1.5, "1y", "", "d", undefined]) {
    assert.throws(() => dayfly.advance(span), /no span of time/);
  }
  assert.equal(await dayfly.now(), before);
});

test("the clock runs and is stopped", async () => {
  await dayfly.run();
  assert.equal((await dayfly.admin("clock")).frozen, false);
  await dayfly.freeze();
  assert.equal((await dayfly.admin("clock")).frozen, true);
});

test("a reset removes everything", async () => {
  const client = new CosmosClient(dayfly.connectionString);
  await client.databases.create({ id: "shop" });
  await dayfly.reset();
  assert.deepEqual((await client.databases.readAll().fetchAll()).resources, []);
  client.dispose();
});

test("a server may be stopped twice", async () => {
  const other = await startDayfly();
  await other.stop();
  await other.stop();
  await assert.rejects(other.now());
});

// The server has the other ends of the pipes of the process that started it, too: they
// end when both have.
test("a server ends with the process that is killed", async () => {
  await assert.rejects(run("process.kill(process.pid, 'SIGKILL')"), { signal: "SIGKILL", stderr: "" });
});

test("a process that does not stop its server ends", async () => {
  assert.equal((await run("console.log(await dayfly.now() > 0)")).stdout, "true\n");
});

test("a server that does not start says so", async () => {
  for (const binary of ["no-such-dayfly", "false"]) {
    const env = { ...process.env, DAYFLY_BIN: binary };
    await assert.rejects(run("", env), ({ stderr }) => stderr.includes(`'${binary}' did not start`));
  }
});
