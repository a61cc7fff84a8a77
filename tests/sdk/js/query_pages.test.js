/** Queries page by page: how long pages are, and how a query goes on from a token. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";

import {
  Server,
  ask,
  askByPage,
  makeContainer,
  overHttpAndHttps,
  refusedWith,
} from "./harness.js";

const COUNT = 40;

const STREAMED = "SELECT * FROM c";
const SORTED = "SELECT * FROM c ORDER BY c.rank DESC";

/** Each kind of query keeps its place in a way of its own. */
const KINDS = {
  streamed: "SELECT VALUE c.n FROM c",
  filtered: "SELECT VALUE c.n FROM c WHERE c.n % 3 = 1",
  joined: "SELECT VALUE [c.n, t] FROM c JOIN t IN c.tags",
  sorted: "SELECT VALUE c.n FROM c ORDER BY c.rank",
  "sorted with ties": "SELECT VALUE c.n FROM c ORDER BY c.four DESC",
  top: "SELECT TOP 17 VALUE c.n FROM c",
  "top of sorted": "SELECT TOP 17 VALUE c.n FROM c ORDER BY c.rank",
  "a window": "SELECT VALUE c.n FROM c OFFSET 5 LIMIT 20",
  "a window of sorted": "SELECT VALUE c.n FROM c ORDER BY c.rank OFFSET 5 LIMIT 20",
  "sorted by an element": "SELECT VALUE c.n FROM c ORDER BY c.marks[0] DESC",
};

/** With this the SDK asks for a plan. Its tokens hold a token of ours for each range. */
const PLAN = { enableQueryControl: true };

/** These must come from one look at the data. */
const IN_ONE_PAGE = [
  "SELECT VALUE COUNT(1) FROM c",
  "SELECT c.pk, COUNT(1) AS count FROM c GROUP BY c.pk",
  "SELECT c.four, COUNT(1) AS count FROM c GROUP BY c.four ORDER BY c.four DESC",
];

/** A container of four ranges, with items in many partitions. */
async function fill(database) {
  const container = await makeContainer({ database }, { id: "c", throughput: 20000 });
  for (let n = 0; n < COUNT; n++) {
    const item = { id: `i${n}`, pk: `p${n % 15}`, n, rank: (n * 11) % COUNT, four: n % 4 };
    const lists = { marks: [n % 5, n], tags: ["a", "b", "c"].slice(0, n % 4) };
    await container.items.create({ ...item, ...lists });
  }
  return container;
}

const rowsOf = (pages) => pages.flatMap(({ rows }) => rows);

/** By a plan, rows without an order come as the ranges are asked. None comes twice. */
function assertSame(rows, whole, query) {
  if (query.includes("ORDER BY")) return assert.deepEqual(rows, whole);
  const distinct = new Set(rows.map((row) => JSON.stringify(row)));
  return assert.deepEqual([rows.length, distinct.size], [whole.length, whole.length]);
}

overHttpAndHttps((world, scheme) => {
  let filled;
  before(async () => {
    filled = await fill((await world.client.databases.create({ id: "filled" })).database);
  });

  for (const query of [STREAMED, SORTED]) {
    test(`pages are as long as asked for: ${query}`, async () => {
      const pages = await askByPage(filled, query, { maxItemCount: 9 });
      assert.deepEqual(pages.map(({ rows }) => rows.length), [9, 9, 9, 9, 4]);
      assert.equal(new Set(rowsOf(pages).map(({ id }) => id)).size, COUNT);
      assert.deepEqual(pages.map(({ token }) => !token), [false, false, false, false, true]);
    });

    test(`a page of just all rows is the last one: ${query}`, async () => {
      const pages = await askByPage(filled, query, { maxItemCount: COUNT });
      assert.deepEqual(pages.map(({ rows }) => rows.length), [COUNT]);
    });
  }

  for (const maxItemCount of [-1, undefined, 1000]) {
    test(`the server may choose how long pages are: ${maxItemCount}`, async () => {
      assert.equal((await ask(filled, STREAMED, { maxItemCount })).length, COUNT);
    });
  }

  test("pages may be fetched ahead", async () => {
    const options = { maxItemCount: 9, bufferItems: true };
    assert.deepEqual(await ask(filled, SORTED, options), await ask(filled, SORTED));
  });

  for (const [kind, query] of Object.entries(KINDS)) {
    test(`a query goes on from the token of any page: ${kind}`, async () => {
      const whole = await ask(filled, query);
      const pages = await askByPage(filled, query, { maxItemCount: 3 });
      assert.deepEqual(rowsOf(pages), whole);
      assert.ok(pages.length > 2);

      const seen = [];
      for (const { rows, token } of pages.slice(0, -1)) {
        seen.push(...rows);
        const options = { maxItemCount: 4, continuationToken: token };
        const rest = await askByPage(filled, query, options);
        assert.deepEqual([...seen, ...rowsOf(rest)], whole);
      }
    });
  }

  for (const [kind, query] of Object.entries(KINDS)) {
    test(`a query by a plan goes on from the SDK's token: ${kind}`, async () => {
      const whole = await ask(filled, query, PLAN);
      const pages = await askByPage(filled, query, { ...PLAN, maxItemCount: 3 });
      assertSame(rowsOf(pages), whole, query);

      // Without an order, later tokens are of no use: the SDK forgets which ranges it
      // is done with.
      const last = query.includes("ORDER BY") ? pages.length - 1 : 3;
      for (let at = 1; at <= last; at++) {
        const { token } = pages[at - 1];
        const options = { ...PLAN, maxItemCount: 4, continuationToken: token };
        const rest = token ? await askByPage(filled, query, options) : pages.slice(at);
        assertSame(rowsOf([...pages.slice(0, at), ...rest]), whole, query);
      }
      assert.ok(pages.slice(0, 3).some(({ token }) => token));
    });
  }

  for (const query of IN_ONE_PAGE) {
    test(`groups come in one page: ${query}`, async () => {
      const pages = await askByPage(filled, query, { maxItemCount: 3 });
      assert.deepEqual(pages, [{ rows: await ask(filled, query), token: undefined }]);
    });
  }

  test("distinct rows keep to the page size", async () => {
    const pages = await askByPage(filled, "SELECT DISTINCT VALUE c.pk FROM c", { maxItemCount: 4 });
    assert.deepEqual(pages.map(({ rows }) => rows.length), [4, 4, 4, 3]);
    assert.equal(new Set(rowsOf(pages)).size, 15);

    const sorted = "SELECT DISTINCT VALUE c.rank FROM c ORDER BY c.rank";
    const [{ rows, token }] = await askByPage(filled, sorted, { maxItemCount: 7 });
    const rest = await askByPage(filled, sorted, { maxItemCount: 9, continuationToken: token });
    assert.deepEqual([rows.length, ...rest.map((page) => page.rows.length)], [7, 9, 9, 9, 6]);
    assert.deepEqual([...rows, ...rowsOf(rest)], await ask(filled, sorted));
  });

  test("a query of one partition goes on from its token", async () => {
    const query = "SELECT VALUE c.n FROM c ORDER BY c.n";
    const options = { maxItemCount: 2, partitionKey: "p3" };
    const [{ rows, token }] = await askByPage(filled, query, options);
    assert.deepEqual(rows, [3, 18]);
    const rest = await askByPage(filled, query, { ...options, continuationToken: token });
    assert.deepEqual(rowsOf(rest), [33]);
  });

  test("what is written behind a page is not seen, and what is ahead is", async () => {
    const container = await fill(world.database);
    const query = "SELECT VALUE c.rank FROM c ORDER BY c.rank";
    const [{ rows, token }] = await askByPage(container, query, { maxItemCount: 10 });
    await container.items.create({ id: "behind", pk: "x", rank: 2.5 });
    await container.items.create({ id: "ahead", pk: "x", rank: 12.5 });
    await container.item("i2", "p2").delete(); // its rank is 22

    const rest = await askByPage(container, query, { continuationToken: token });
    const ranks = Array.from({ length: COUNT }, (_, rank) => rank);
    assert.deepEqual(rows, ranks.slice(0, 10));
    const ahead = [...ranks.slice(10), 12.5].filter((rank) => rank !== 22);
    assert.deepEqual(rowsOf(rest), ahead.sort((a, b) => a - b));
  });

  test("a token that is none, or of another query, is refused", async () => {
    const [{ token }] = await askByPage(filled, STREAMED, { maxItemCount: 9 });
    for (const continuationToken of ["nonsense", "AAAA", "[]", "{}", "-RID:~a#RT:1", token]) {
      await assert.rejects(ask(filled, SORTED, { continuationToken }), refusedWith(400));
    }
  });

  test("a query goes on after the server was killed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "dayfly-"));
    /** Runs `body` with a server that has its data in the folder. */
    const withServer = async (body) => {
      const server = await Server.start("--data", folder);
      const client = server.client(scheme);
      try {
        await body(client);
      } finally {
        client.dispose();
        await server.stop();
      }
    };

    const asked = [];
    await withServer(async (client) => {
      const { database } = await client.databases.create({ id: "db" });
      const container = await fill(database);
      const kinds = Object.values(KINDS).map((query) => [query, {}]);
      const planned = Object.values(KINDS).map((query) => [query, PLAN]);
      for (const [query, how] of [...kinds, ...planned]) {
        const options = { maxItemCount: 4, ...how };
        const pages = await askByPage(container, query, options);
        const first = pages.findIndex(({ token }) => token);
        const seen = rowsOf(pages.slice(0, first + 1));
        asked.push({ query, options, whole: rowsOf(pages), seen, token: pages[first].token });
      }
    });
    await withServer(async (client) => {
      const container = client.database("db").container("c");
      for (const { query, options, whole, seen, token } of asked) {
        const rest = await askByPage(container, query, { ...options, continuationToken: token });
        const rows = [...seen, ...rowsOf(rest)];
        if (options.enableQueryControl) assertSame(rows, whole, query);
        else assert.deepEqual(rows, whole, query);
      }
    });
    await rm(folder, { recursive: true });
  });
});
