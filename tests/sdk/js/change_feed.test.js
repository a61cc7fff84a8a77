/** The change feed: the latest versions, and all of them with what was deleted or expired. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { ChangeFeedMode, ChangeFeedStartFrom } from "@azure/cosmos";

import { makeContainer, overHttpAndHttps } from "./harness.js";

const ALL = { changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes };

/** The changes until nothing is new, and the token for what comes after. */
async function read(container, from, options = {}) {
  const changes = [];
  const pages = container.items.getChangeFeedIterator({ ...options, changeFeedStartFrom: from });
  for (;;) {
    const page = await pages.readNext();
    if (page.statusCode === 304) return { changes, token: page.continuationToken };
    changes.push(...page.result);
  }
}

const after = (token) => ChangeFeedStartFrom.Continuation(token);

function shown({ current, metadata }) {
  const expired = metadata.timeToLiveExpired ? " by its ttl" : "";
  return `${metadata.operationType} ${current.id ?? metadata.id}${expired}`;
}

overHttpAndHttps((world) => {
  test("the latest versions come once", async () => {
    const container = await makeContainer(world);
    for (const n of [0, 1, 2]) await container.items.create({ id: `${n}`, pk: "x", n });
    await container.items.upsert({ id: "0", pk: "x", n: 7 });
    await container.item("1", "x").delete();
    const ids = ({ changes }) => changes.map((change) => change.id);
    const all = await read(container, ChangeFeedStartFrom.Beginning());
    assert.deepEqual(ids(all), ["2", "0"]);
    assert.deepEqual((await read(container, after(all.token))).changes, []);
    await container.items.create({ id: "3", pk: "y" });
    assert.deepEqual(ids(await read(container, after(all.token))), ["3"]);
    assert.deepEqual(ids(await read(container, ChangeFeedStartFrom.Beginning("y"))), ["3"]);
    assert.deepEqual(ids(await read(container, ChangeFeedStartFrom.Now())), []);
  });

  test("every version comes with its end", async () => {
    const container = await makeContainer(world, { defaultTtl: -1 });
    const { token } = await read(container, ChangeFeedStartFrom.Now(), ALL);
    await container.items.create({ id: "a", pk: "x", n: 1 });
    await container.items.upsert({ id: "a", pk: "x", n: 2 });
    await container.item("a", "x").delete();
    await container.items.create({ id: "b", pk: "x", ttl: 5 });
    const told = await read(container, after(token), ALL);
    assert.deepEqual(told.changes.map(shown), ["create a", "replace a", "delete a", "create b"]);
    const [create, replace, gone] = told.changes;
    assert.equal(replace.metadata.previousImageLSN, create.metadata.lsn);
    assert.deepEqual([gone.current, gone.metadata.partitionKey], [{}, { pk: "x" }]);
    assert.equal(gone.previous.n, 2);
    await world.server.advance(5);
    // The background tells it.
    let ends = [];
    for (const end = Date.now() + 20_000; ends.length === 0; ) {
      assert.ok(Date.now() < end, "nothing is told");
      ends = (await read(container, after(told.token), ALL)).changes;
    }
    assert.deepEqual(ends.map(shown), ["delete b by its ttl"]);
  });

  test("every version is not told from the beginning", async () => {
    const container = await makeContainer(world);
    await assert.rejects(read(container, ChangeFeedStartFrom.Beginning(), ALL));
  });
});
