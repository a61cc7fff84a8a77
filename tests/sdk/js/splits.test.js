/** Ranges that are divided while a client uses them: it goes on, and loses nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { ChangeFeedStartFrom } from "@azure/cosmos";

import { ask, askByPage, find, makeContainer, overHttpAndHttps } from "./harness.js";

const COUNT = 40;

/** Each kind of query keeps its place in a way of its own. */
const KINDS = {
  streamed: "SELECT VALUE c.n FROM c",
  filtered: "SELECT VALUE c.n FROM c WHERE c.n % 3 = 1",
  "by a range": "SELECT VALUE c.n FROM c WHERE c.n >= 0",
  sorted: "SELECT VALUE c.n FROM c ORDER BY c.rank",
};

/** With this the SDK asks for a plan, and each range by itself. */
const PLAN = { enableQueryControl: true };

const ids = (items) => items.map(({ id }) => id).sort();
const inOrder = (rows) => [...rows].sort((left, right) => left - right);

/** A container of one range, with items in many partitions. */
async function fill(world) {
  const container = await makeContainer(world);
  for (let n = 0; n < COUNT; n++) {
    await container.items.create({ id: `i${n}`, pk: `p${n % 15}`, n, rank: (n * 11) % COUNT });
  }
  return container;
}

/** Raises the throughput of a container, which divides its ranges. */
async function raise(world, container, throughput) {
  const { resource } = await container.readOffer();
  resource.content.offerThroughput = throughput;
  await world.client.offer(resource.id).replace(resource);
}

/** All rows of a query, whose ranges are divided after the first page. */
async function askWhileDividing(world, container, query) {
  const iterator = container.items.query(query, { maxItemCount: 4 });
  const rows = [...((await iterator.fetchNext()).resources ?? [])];
  await raise(world, container, 25000);
  while (iterator.hasMoreResults()) {
    rows.push(...((await iterator.fetchNext()).resources ?? []));
  }
  return rows;
}

/** What changed since a place, and the place after it. */
async function changes(container, changeFeedStartFrom) {
  const iterator = container.items.getChangeFeedIterator({ maxItemCount: 5, changeFeedStartFrom });
  const found = [];
  for (;;) {
    const page = await iterator.readNext();
    if (page.statusCode === 304) {
      return [ids(found), ChangeFeedStartFrom.Continuation(page.continuationToken)];
    }
    found.push(...page.result);
  }
}

overHttpAndHttps((world, scheme) => {
  for (const [kind, query] of Object.entries(KINDS)) {
    test(`a query goes on: ${kind}`, async () => {
      const container = await fill(world);
      const whole = await ask(container, query);
      assert.deepEqual(await askWhileDividing(world, container, query), whole);
    });

    // A client that has cached the ranges that are gone asks for them again and again.
    test(`a query by a plan has the new ranges: ${kind}`, async () => {
      const container = await fill(world);
      const whole = await ask(container, query);
      await raise(world, container, 25000);
      const client = world.server.client(scheme);
      const seen = client.database(world.database.id).container(container.id);
      const rows = await ask(seen, query, { ...PLAN, maxItemCount: 4 });
      client.dispose();
      assert.deepEqual(inOrder(rows), inOrder(whole));
      if (query.includes("ORDER BY")) assert.deepEqual(rows, whole);
    });

    test(`a token of a query goes on: ${kind}`, async () => {
      const container = await fill(world);
      const whole = await ask(container, query);
      const [{ rows, token }] = await askByPage(container, query, { maxItemCount: 4 });
      await raise(world, container, 25000);
      const rest = await ask(container, query, { maxItemCount: 4, continuationToken: token });
      assert.deepEqual([...rows, ...rest], whole);
    });
  }

  test("counts and items stay", async () => {
    const container = await fill(world);
    assert.deepEqual(await ask(container, "SELECT VALUE COUNT(1) FROM c"), [COUNT]);
    await raise(world, container, 25000);
    assert.deepEqual(await ask(container, "SELECT VALUE COUNT(1) FROM c"), [COUNT]);
    assert.equal((await find(container, "i7", "p7")).n, 7);
    const { resources } = await container.readPartitionKeyRanges().fetchAll();
    assert.deepEqual(
      resources.map(({ id, parents }) => [id, parents]),
      [["3", ["0", "1"]], ["4", ["0", "1"]], ["2", ["0"]]],
    );
  });

  test("bulk finds the new ranges", async () => {
    const container = await fill(world);
    const upserts = (value) =>
      Array.from({ length: COUNT }, (_, n) => ({
        operationType: "Upsert",
        partitionKey: `p${n % 15}`,
        resourceBody: { id: `i${n}`, pk: `p${n % 15}`, n: value },
      }));
    await container.items.executeBulkOperations(upserts(-1));
    await raise(world, container, 25000);
    const results = await container.items.executeBulkOperations(upserts(-2));
    assert.ok(results.every(({ response }) => response?.statusCode === 200));
    assert.deepEqual(new Set(await ask(container, KINDS.streamed)), new Set([-2]));
  });

  test("the change feed goes on", async () => {
    const container = await fill(world);
    const [before, place] = await changes(container, ChangeFeedStartFrom.Beginning());
    assert.equal(before.length, COUNT);
    await raise(world, container, 25000);
    for (const n of [3, 20, 39]) {
      await container.items.upsert({ id: `i${n}`, pk: `p${n % 15}`, n: -n });
    }
    assert.deepEqual((await changes(container, place))[0], ["i20", "i3", "i39"]);
  });
});
