/** A container that asks for more than its throughput: refused, and the SDK's own retry. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { listIds, Server } from "./harness.js";

const THROUGHPUT = 400;

/** A server that refuses, with a container, for the time of a test. */
async function enforced(t) {
  const server = await Server.start("--memory", "--throughput", "enforced");
  t.after(() => server.stop());
  const client = server.client("http");
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: "shop" });
  const { container } = await database.containers.create({
    id: "carts",
    partitionKey: "/pk",
    throughput: THROUGHPUT,
  });
  return { server, carts: container };
}

const create = (carts, number) => carts.items.create({ id: `${number}`, pk: "x" });

async function throttled(server) {
  return (await server.admin("containers/shop/carts/throughput?seconds=1")).total.throttled;
}

test("while no time passes, a request stays refused", async (t) => {
  const { server, carts } = await enforced(t);
  let number = 0;
  const tooMany = async () => {
    for (; number < THROUGHPUT; number++) await create(carts, number);
  };
  await assert.rejects(tooMany, (error) => {
    assert.equal(error.code, 429);
    assert.equal(error.substatus, 3200);
    return true;
  });
  // The first time, and then as often as the SDK tries again.
  assert.equal(await throttled(server), 10);
  await server.advance(1);
  await create(carts, number);
});

test("the SDK waits and tries again", async (t) => {
  const { server, carts } = await enforced(t);
  // What it costs is taken when it is done, and is more than there is for two seconds: a clock
  // that runs again may be anywhere in its second.
  await carts.items.create({ id: "large", pk: "x", text: "x".repeat(1_900_000) });
  await server.run();
  await create(carts, 1);
  assert.ok((await throttled(server)) > 0);
  await server.freeze();
  await server.advance(5);
  assert.deepEqual(await listIds(carts), ["1", "large"]);
});

test("bulk sends again those operations that were refused", async (t) => {
  const { server, carts } = await enforced(t);
  await carts.items.create({ id: "large", pk: "x", text: "x".repeat(1_900_000) });
  const operations = Array.from({ length: 20 }, (_, number) => ({
    operationType: "Create",
    partitionKey: "x",
    resourceBody: { id: `${number}`, pk: "x" },
  }));
  await server.run();
  const results = await carts.items.executeBulkOperations(operations);
  assert.deepEqual(results.map(({ response }) => response?.statusCode), Array(20).fill(201));
  assert.ok((await throttled(server)) > 0);
  // Not one request for each of them.
  assert.ok((await throttled(server)) < 20);
  await server.freeze();
  await server.advance(5);
  assert.equal((await listIds(carts)).length, 21);
});
