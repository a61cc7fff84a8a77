/** Time to live, second by second. No test waits: each moves the server's clock. */
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  DAY, NINETY_DAYS, YEAR, ask, find, listIds, makeContainer, overHttpAndHttps, refusedWith,
} from "./harness.js";

/** Whether the item `a` is there, for a read and for the list alike. */
async function lives(container) {
  const found = (await find(container, "a", "x")) !== undefined;
  assert.equal((await listIds(container)).includes("a"), found);
  return found;
}

/** Reads the container, changes its default and replaces it. */
async function setDefaultTtl(container, defaultTtl) {
  const { resource: definition } = await container.read();
  await container.replace({ ...definition, defaultTtl });
}

/** Queries, and what they show when these of the items `a`, `b` and `c` live. */
const SHOWN = [
  ["SELECT VALUE c.id FROM c ORDER BY c.n", (living) => living],
  ["SELECT VALUE c.id FROM c WHERE c.id = 'a'", (living) => living.filter((id) => id === "a")],
  ["SELECT VALUE c.id FROM c WHERE c.n >= 0 ORDER BY c.id", (living) => living],
  ["SELECT TOP 5 VALUE c.id FROM c ORDER BY c.n DESC", (living) => living.toReversed()],
  ["SELECT DISTINCT VALUE c.id FROM c ORDER BY c.id", (living) => living],
  ["SELECT VALUE c.id FROM c JOIN t IN c.tags ORDER BY c.id", (living) => living],
  ["SELECT VALUE MIN(c.id) FROM c", (living) => living.slice(0, 1)],
  ["SELECT VALUE COUNT(1) FROM c", (living) => [living.length]],
  [
    "SELECT COUNT(1) AS n, c.tags FROM c GROUP BY c.tags",
    ({ length }) => [{ n: length, tags: ["t"] }],
  ],
];

overHttpAndHttps((world) => {
  const advance = (seconds) => world.server.advance(seconds);

  test("an item expires 90 days after its write by the container's default", async () => {
    const container = await makeContainer(world, { defaultTtl: NINETY_DAYS });
    await container.items.create({ id: "a", pk: "x" });

    await advance(NINETY_DAYS - 1);
    assert.ok(await lives(container));
    await advance(1);
    assert.ok(!(await lives(container)));
  });

  test("an item expires 90 days after its write by its own ttl", async () => {
    const container = await makeContainer(world, { defaultTtl: -1 });
    await container.items.create({ id: "a", pk: "x", ttl: NINETY_DAYS });

    await advance(NINETY_DAYS - 1);
    assert.ok(await lives(container));
    await advance(1);
    assert.ok(!(await lives(container)));
  });

  test("every write extends an item's life", async () => {
    const container = await makeContainer(world, { defaultTtl: DAY });
    const body = { id: "a", pk: "x", ttl: 100 };
    const { item } = await container.items.create(body);

    for (const write of [() => item.replace(body), () => container.items.upsert(body)]) {
      await advance(99);
      assert.equal((await write()).resource._ts, await world.server.now());
    }
    await advance(99);
    assert.ok(await lives(container));
    await advance(1);
    assert.ok(!(await lives(container)));
  });

  test("reading extends nothing", async () => {
    const container = await makeContainer(world, { defaultTtl: 100 });
    await container.items.create({ id: "a", pk: "x" });

    await advance(99);
    assert.ok(await lives(container));
    await advance(1);
    assert.ok(!(await lives(container)));
  });

  test("a ttl can be changed", async () => {
    const container = await makeContainer(world, { defaultTtl: DAY });
    await container.items.create({ id: "a", pk: "x", ttl: 100 });

    const item = await find(container, "a", "x");
    await container.item("a", "x").replace({ ...item, ttl: 2000 });

    await advance(1999);
    assert.equal((await find(container, "a", "x")).ttl, 2000);
    await advance(1);
    assert.ok(!(await lives(container)));
  });

  test("a removed ttl leaves the container's default", async () => {
    const container = await makeContainer(world, { defaultTtl: 1000 });
    await container.items.create({ id: "a", pk: "x", ttl: 100 });

    const item = await find(container, "a", "x");
    delete item.ttl;
    await container.item("a", "x").replace(item);

    await advance(999);
    assert.ok(!("ttl" in (await find(container, "a", "x"))));
    await advance(1);
    assert.ok(!(await lives(container)));
  });

  test("a ttl of -1 never expires", async () => {
    const container = await makeContainer(world, { defaultTtl: 100 });
    await container.items.create({ id: "a", pk: "x", ttl: -1 });
    await container.items.create({ id: "b", pk: "x" });

    await advance(10 * YEAR);
    assert.ok(await lives(container));
    assert.deepEqual(await listIds(container), ["a"]);
  });

  test("an item that was due to expire can be kept for ever", async () => {
    const container = await makeContainer(world, { defaultTtl: 100 });
    const { item } = await container.items.create({ id: "a", pk: "x" });

    await advance(99);
    await item.replace({ id: "a", pk: "x", ttl: -1 });
    await advance(10 * YEAR);
    assert.ok(await lives(container));
  });

  for (const [name, off] of [["left out", undefined], ["null", null]]) {
    test(`disabling ttl stops expiry and brings nothing back: default ${name}`, async () => {
      const container = await makeContainer(world, { defaultTtl: 1000 });
      await container.items.create({ id: "expired", pk: "x", ttl: 10 });
      await container.items.create({ id: "a", pk: "x" });
      await container.items.create({ id: "own ttl", pk: "x", ttl: 100 });
      await advance(10);

      await setDefaultTtl(container, off);
      await advance(10 * YEAR);
      assert.ok(await lives(container));
      assert.deepEqual(await listIds(container), ["a", "own ttl"]);
      assert.equal(await find(container, "expired", "x"), undefined);
    });
  }

  test("nothing expires while ttl is off", async () => {
    const container = await makeContainer(world);
    await container.items.create({ id: "a", pk: "x", ttl: 1 });

    await advance(10 * YEAR);
    assert.ok(await lives(container));
    assert.equal((await find(container, "a", "x")).ttl, 1);
  });

  test("a default of -1 expires only items with a ttl", async () => {
    const container = await makeContainer(world, { defaultTtl: -1 });
    await container.items.create({ id: "a", pk: "x" });
    await container.items.create({ id: "b", pk: "x", ttl: 10 });

    await advance(10);
    assert.ok(await lives(container));
    assert.deepEqual(await listIds(container), ["a"]);
  });

  test("a new default counts for items that are already there", async () => {
    const container = await makeContainer(world);
    await container.items.create({ id: "a", pk: "x" });
    await advance(500);

    await setDefaultTtl(container, 501);
    assert.ok(await lives(container));
    await advance(1);
    assert.ok(!(await lives(container)));
    await setDefaultTtl(container, YEAR);
    assert.ok(!(await lives(container)));
  });

  test("no operation finds an expired item", async () => {
    const container = await makeContainer(world, { defaultTtl: 10 });
    const { item, etag } = await container.items.create({ id: "a", pk: "x" });
    await advance(10);

    assert.equal((await item.read()).statusCode, 404);
    await assert.rejects(item.replace({ id: "a", pk: "x" }), refusedWith(404));
    await assert.rejects(item.delete(), refusedWith(404));

    const { resource, statusCode } = await container.items.create({ id: "a", pk: "x" });
    assert.equal(statusCode, 201);
    assert.notEqual(resource._etag, etag);
    assert.equal(resource._ts, await world.server.now());
  });

  test("an upsert over an expired item creates", async () => {
    const container = await makeContainer(world, { defaultTtl: 10 });
    const { resource: old } = await container.items.create({ id: "a", pk: "x" });
    await advance(10);

    const { resource, statusCode } = await container.items.upsert({ id: "a", pk: "x" });
    assert.equal(statusCode, 201);
    assert.notEqual(resource._rid, old._rid);
  });

  test("an expired item frees its unique key", async () => {
    const container = await makeContainer(world, {
      defaultTtl: 10,
      uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] },
    });
    const email = "zoe@example.com";
    await container.items.create({ id: "a", pk: "x", email });
    await assert.rejects(container.items.create({ id: "b", pk: "x", email }), refusedWith(409));

    await advance(10);
    await container.items.create({ id: "b", pk: "x", email });
  });

  for (const ttl of [0, -10, 2 ** 31, null, "10", 1.5]) {
    const shown = JSON.stringify(ttl);
    test(`a wrong ttl is refused with the service's text: ${shown}`, async () => {
      const container = await makeContainer(world, { defaultTtl: -1 });

      await assert.rejects(container.items.create({ id: "a", pk: "x", ttl }), (error) => {
        assert.equal(error.code, 400);
        assert.ok(
          error.message.replaceAll('\\"', '"').includes(
            `The input ttl '${shown}' is invalid. Ensure to provide a nonzero positive integer ` +
              "less than or equal to '2147483647', or '-1' which means never expire.",
          ),
          error.message,
        );
        return true;
      });
      assert.deepEqual(await listIds(container), []);
    });
  }

  test("the largest ttl is accepted", async () => {
    const container = await makeContainer(world, { defaultTtl: 2 ** 31 - 1 });
    await container.items.create({ id: "a", pk: "x", ttl: 2 ** 31 - 1 });
    await advance(30 * YEAR);
    assert.ok(await lives(container));
  });

  for (const forceQueryPlan of [false, true]) {
    for (const throughput of [400, 20000]) {
      const how = `${forceQueryPlan ? "by a plan" : "as a whole"}, ${throughput} RU`;
      test(`an expired item is in no query from its second on: ${how}`, async () => {
        const container = await makeContainer(world, { defaultTtl: 100, throughput });
        for (const [n, ttl] of [{ ttl: 50 }, {}, { ttl: -1 }].entries()) {
          await container.items.create({ id: "abc"[n], pk: `pk-${n}`, n, tags: ["t"], ...ttl });
        }

        for (const [seconds, living] of [[49, "abc"], [1, "bc"], [49, "bc"], [1, "c"]]) {
          await advance(seconds);
          for (const [query, expected] of SHOWN) {
            const rows = await ask(container, query, { forceQueryPlan });
            assert.deepEqual(rows, expected([...living]), query);
          }
        }
      });

      test(`what expires between two pages is not on the second: ${how}`, async () => {
        const container = await makeContainer(world, { defaultTtl: -1, throughput });
        for (let n = 0; n < 20; n++) {
          await container.items.create({ id: `${n}`, pk: `${n}`, n, ttl: 10 + (n % 2) });
        }
        const query = "SELECT VALUE c.n FROM c ORDER BY c.n";
        const pages = container.items.query(query, { maxItemCount: 8, forceQueryPlan });
        const { resources: first } = await pages.fetchNext();
        assert.deepEqual(first, [0, 1, 2, 3, 4, 5, 6, 7]);

        await advance(11);
        const rest = [];
        while (pages.hasMoreResults()) rest.push(...((await pages.fetchNext()).resources ?? []));
        // What the SDK has fetched ahead, it has.
        if (!forceQueryPlan) assert.deepEqual(rest, []);
        assert.deepEqual(await ask(container, query, { forceQueryPlan }), []);
      });
    }
  }
});
