/**
 * Queries: every clause of the language, over a container of several ranges.
 *
 * Each is asked twice: the server carries it out as a whole, and, with
 * `forceQueryPlan`, the SDK asks for a plan, sends each range its part and puts
 * the answers together. What a query should show is said a third time, in
 * JavaScript.
 */
import assert from "node:assert/strict";
import { before, test } from "node:test";

import { ask, makeContainer, overHttpAndHttps, refusedWith } from "./harness.js";

const COLOURS = ["red", "green", "blue"];

const ORDERS = Array.from({ length: 60 }, (_, number) => ({
  id: `order-${number}`,
  pk: `customer-${number % 20}`,
  number,
  total: (number * 7) % 60,
  totals: [(number * 7) % 60],
  colour: COLOURS[number % 3],
  tags: ["a", "b", "c"].slice(0, number % 4),
  address: { city: number % 2 ? "Bern" : "Genève", zip: 3000 + number },
  ...(number % 5 === 0 && { note: number % 10 === 0 ? null : `note ${number}` }),
}));

const by = (key) => (a, b) => key(a) - key(b);
const BY_TOTAL = ORDERS.toSorted(by(({ total }) => total));
const numbers = (condition) => ORDERS.filter(condition).map(({ number }) => number);
const sum = (values) => values.reduce((a, b) => a + b, 0);
const upTo = (count) => Array.from({ length: count }, (_, number) => number);

const IN_ORDER = {
  "SELECT VALUE c.total FROM c ORDER BY c.total": upTo(60),
  "SELECT VALUE c.total FROM c ORDER BY c.total DESC": upTo(60).reverse(),
  "SELECT c.id, c.total FROM c ORDER BY c.total": BY_TOTAL.map(({ id, total }) => ({ id, total })),
  "SELECT VALUE c.number FROM c ORDER BY c.colour ASC, c.total DESC": COLOURS.toSorted().flatMap(
    (colour) => BY_TOTAL.filter((order) => order.colour === colour).map((o) => o.number).reverse(),
  ),
  "SELECT VALUE c.address.zip FROM c WHERE c.address.city = 'Bern' ORDER BY c.address.zip":
    upTo(30).map((half) => 3001 + 2 * half),
  "SELECT TOP 5 VALUE c.total FROM c ORDER BY c.total": [0, 1, 2, 3, 4],
  "SELECT VALUE c.total FROM c ORDER BY c.total OFFSET 10 LIMIT 4": [10, 11, 12, 13],
  "SELECT VALUE c.total FROM c ORDER BY c.total OFFSET 58 LIMIT 10": [58, 59],
  "SELECT DISTINCT VALUE c.colour FROM c ORDER BY c.colour": COLOURS.toSorted(),
  "SELECT VALUE [c.total, t] FROM c JOIN t IN c.tags WHERE c.total < 6 ORDER BY c.total":
    BY_TOTAL.slice(0, 6).flatMap(({ total, tags }) => tags.map((tag) => [total, tag])),
  "SELECT VALUE c.total FROM c WHERE c.total < 9 ORDER BY c.totals[0] DESC": upTo(9).reverse(),
  "SELECT VALUE o.total FROM (SELECT * FROM root c WHERE c.total < 4) AS o ORDER BY o.total DESC":
    upTo(4).reverse(),
  "SELECT c.colour, COUNT(1) AS count FROM c GROUP BY c.colour ORDER BY c.colour":
    COLOURS.toSorted().map((colour) => ({ colour, count: 20 })),
  "SELECT VALUE MAX(c.total) FROM c GROUP BY c.address.city, c.total ORDER BY c.total DESC OFFSET 5 LIMIT 3":
    [54, 53, 52],
  "SELECT TOP 2 c.colour AS hue FROM c GROUP BY c.colour ORDER BY hue DESC":
    COLOURS.toSorted().reverse().slice(0, 2).map((hue) => ({ hue })),
};

const IN_ANY_ORDER = {
  "SELECT VALUE COUNT(1) FROM c": [60],
  "SELECT VALUE SUM(c.total) FROM c": [1770],
  "SELECT VALUE AVG(c.total) FROM c": [29.5],
  "SELECT VALUE MIN(c.address.zip) FROM c": [3000],
  "SELECT VALUE MAX(c.total) FROM c": [59],
  "SELECT VALUE COUNT(c.note) FROM c": [12],
  "SELECT VALUE COUNT(1) FROM c WHERE c.total > 100": [0],
  "SELECT COUNT(1) AS count, MIN(c.total) AS least, MAX(c.total) AS most FROM c": [
    { count: 60, least: 0, most: 59 },
  ],
  "SELECT c.colour, COUNT(1) AS count, SUM(c.total) AS total FROM c GROUP BY c.colour":
    COLOURS.map((colour) => {
      const orders = ORDERS.filter((order) => order.colour === colour);
      return { colour, count: 20, total: sum(orders.map(({ total }) => total)) };
    }),
  "SELECT c.address.city, AVG(c.total) AS mean, MAX(c.zip) AS none FROM c GROUP BY c.address.city":
    ["Bern", "Genève"].map((city) => {
      const orders = ORDERS.filter(({ address }) => address.city === city);
      return { city, mean: sum(orders.map(({ total }) => total)) / 30 };
    }),
  "SELECT VALUE COUNT(1) FROM c GROUP BY c.colour": [20, 20, 20],
  "SELECT c.pk FROM c GROUP BY c.pk": upTo(20).map((at) => ({ pk: `customer-${at}` })),
  "SELECT DISTINCT VALUE c.colour FROM c": COLOURS,
  "SELECT DISTINCT c.pk FROM c": upTo(20).map((at) => ({ pk: `customer-${at}` })),
  "SELECT DISTINCT VALUE c.tags FROM c": [[], ["a"], ["a", "b"], ["a", "b", "c"]],
  "SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags": [90],
  "SELECT c.number, t AS tag FROM c JOIN t IN c.tags WHERE t = 'c'": numbers(
    ({ tags }) => tags.length === 3,
  ).map((number) => ({ number, tag: "c" })),
  "SELECT VALUE c.number FROM c WHERE EXISTS (SELECT VALUE t FROM t IN c.tags)": numbers(
    ({ tags }) => tags.length,
  ),
  "SELECT VALUE c.number FROM c WHERE c.address.city LIKE 'Gen%'": numbers(
    ({ number }) => number % 2 === 0,
  ),
  "SELECT VALUE c.number FROM c WHERE c.total BETWEEN 10 AND 19": numbers(
    ({ total }) => total >= 10 && total <= 19,
  ),
  "SELECT VALUE c.number FROM c WHERE IS_NULL(c.note)": numbers(({ number }) => number % 10 === 0),
  "SELECT VALUE c.note FROM c": ORDERS.filter((o) => "note" in o).map(({ note }) => note),
  "SELECT VALUE c.number FROM c WHERE c.pk = 'customer-3'": [3, 23, 43],
  "SELECT VALUE c.number FROM c WHERE c.pk IN ('customer-3', 'customer-4')": [3, 4, 23, 24, 43, 44],
};

/** A part of the rows, whichever: how many. */
const COUNTED = {
  "SELECT TOP 5 * FROM c": 5,
  "SELECT TOP 100 * FROM c": 60,
  "SELECT * FROM c OFFSET 3 LIMIT 7": 7,
  "SELECT * FROM c OFFSET 57 LIMIT 7": 3,
  "SELECT * FROM c OFFSET 60 LIMIT 7": 0,
};

const inAnyOrder = (rows) => rows.map((row) => JSON.stringify(row)).toSorted();

overHttpAndHttps((world) => {
  let orders;
  before(async () => {
    const { database } = await world.client.databases.create({ id: "orders" });
    const colour = { path: "/colour", order: "ascending" };
    const total = { path: "/total", order: "descending" };
    const indexingPolicy = { includedPaths: [{ path: "/*" }], compositeIndexes: [[colour, total]] };
    orders = await makeContainer({ database }, { throughput: 20000, indexingPolicy });
    for (const order of ORDERS) await orders.items.create(order);
  });

  for (const forceQueryPlan of [false, true]) {
    const how = forceQueryPlan ? "by a plan" : "as a whole";
    const rowsOf = (query, maxItemCount) => ask(orders, query, { maxItemCount, forceQueryPlan });

    for (const maxItemCount of [undefined, 1, 7]) {
      const pages = maxItemCount ? `pages of ${maxItemCount}` : "the SDK's pages";
      for (const [query, expected] of Object.entries(IN_ORDER)) {
        test(`rows are in order, ${how}, ${pages}: ${query}`, async () => {
          assert.deepEqual(await rowsOf(query, maxItemCount), expected);
        });
      }
      for (const [query, expected] of Object.entries(IN_ANY_ORDER)) {
        test(`rows are found, ${how}, ${pages}: ${query}`, async () => {
          assert.deepEqual(inAnyOrder(await rowsOf(query, maxItemCount)), inAnyOrder(expected));
        });
      }
      for (const [query, expected] of Object.entries(COUNTED)) {
        test(`a part of the rows is found, ${how}, ${pages}: ${query}`, async () => {
          const rows = await rowsOf(query, maxItemCount);
          assert.equal(rows.length, expected);
          assert.equal(new Set(rows.map(({ id }) => id)).size, expected);
        });
      }
    }

    test(`parameters stand for values, ${how}`, async () => {
      for (const [condition, parameters, expected] of [
        ["c.colour = @v", { v: "red" }, ({ colour }) => colour === "red"],
        ["c.total < @v", { v: 10.5 }, ({ total }) => total < 10.5],
        ["(c.address.city = 'Bern') = @v", { v: true }, ({ number }) => number % 2],
        ["c.note = @v", { v: null }, ({ number }) => number % 10 === 0],
        ["c.tags = @v", { v: ["a"] }, ({ tags }) => tags.length === 1],
        ["c.address = @v", { v: ORDERS[7].address }, ({ number }) => number === 7],
        ["ARRAY_CONTAINS(@v, c.total)", { v: [1, 2] }, ({ total }) => [1, 2].includes(total)],
        ["c.total IN (@v, @w)", { v: 5, w: "five" }, ({ total }) => total === 5],
        ["c[@v] = @w", { v: "colour", w: "blue" }, ({ colour }) => colour === "blue"],
        ["c.pk = @v", { v: "customer-7" }, ({ pk }) => pk === "customer-7"],
        ["c.colour = @v", { v: "' OR true OR '" }, () => false],
      ]) {
        const query = `SELECT VALUE c.number FROM c WHERE ${condition} ORDER BY c.number`;
        const rows = await ask(orders, query, { forceQueryPlan }, parameters);
        assert.deepEqual(rows, numbers(expected), condition);
      }
    });

    test(`top, offset and limit may be parameters, ${how}`, async () => {
      const window = "SELECT VALUE c.total FROM c ORDER BY c.total OFFSET @skip LIMIT @take";
      const rows = await ask(orders, window, { forceQueryPlan }, { skip: 2, take: 3 });
      assert.deepEqual(rows, [2, 3, 4]);
      const top = "SELECT TOP @take VALUE c.total FROM c ORDER BY c.total";
      assert.deepEqual(await ask(orders, top, { forceQueryPlan }, { take: 2 }), [0, 1]);
    });

    test(`many items are read by one query, ${how}`, async () => {
      const wanted = ORDERS.filter(({ total }) => total % 2);
      const one = (_, at) => `(c.id = @id${at} AND c.pk = @pk${at})`;
      const query = `SELECT * FROM c WHERE ${wanted.map(one).join(" OR ")} OR c.id IN (@none)`;
      const parameters = { none: "nothing" };
      wanted.forEach(({ id, pk }, at) => {
        parameters[`id${at}`] = id;
        parameters[`pk${at}`] = pk;
      });

      const rows = await ask(orders, query, { forceQueryPlan }, parameters);
      const found = rows.map(({ number }) => number).sort((a, b) => a - b);
      assert.deepEqual(found, numbers(({ total }) => total % 2));
    });

    test(`a query tells its metrics and charge, ${how}`, async () => {
      const query = "SELECT * FROM c WHERE c.colour = 'red'";
      const options = { populateQueryMetrics: true, forceQueryPlan };
      const response = await orders.items.query(query, options).fetchAll();

      // One for each request that was sent at a time: with a plan, for each range.
      const metrics = Object.values(response.queryMetrics);
      assert.equal(metrics.length, forceQueryPlan ? 4 : 1);
      assert.equal(sum(metrics.map((part) => part.outputDocumentCount)), 20);
      assert.ok(sum(metrics.map((part) => part.retrievedDocumentCount)) >= 20);
      assert.ok(sum(metrics.map((part) => part.outputDocumentSize)) > 0);
      assert.ok(metrics[0].totalQueryExecutionTime.totalMilliseconds() > 0);
      assert.ok(response.requestCharge > 0);
    });

    for (const [query, code] of [
      ["SELECT * FORM c", "SC1001"],
      ["SELECT * FROM c WHERE c.id = 'a", "SC1012"],
      ["SELECT x.id FROM c", "SC2001"],
      ["SELECT NOSUCH(c.id) FROM c", "SC2005"],
    ]) {
      test(`a wrong query is refused with its code, ${how}: ${query}`, async () => {
        await assert.rejects(ask(orders, query, { forceQueryPlan }), (error) => {
          assert.equal(error.code, 400);
          assert.match(error.message, new RegExp(code));
          return true;
        });
      });
    }
  }

  test("a query of one partition sees that partition", async () => {
    const partitionKey = "customer-3";
    const query = "SELECT VALUE c.number FROM c ORDER BY c.number DESC";
    assert.deepEqual(await ask(orders, query, { partitionKey }), [43, 23, 3]);
    const count = "SELECT VALUE COUNT(1) FROM c";
    assert.deepEqual(await ask(orders, count, { partitionKey }), [3]);
    assert.deepEqual(await ask(orders, count, { partitionKey: "nobody" }), [0]);
  });

  test("databases and containers can be queried", async () => {
    const container = await makeContainer(world, { defaultTtl: 10 });
    await makeContainer(world);

    const query = "SELECT VALUE d.id FROM d WHERE d.id = @id";
    const parameters = [{ name: "@id", value: world.database.id }];
    const databases = world.client.databases.query({ query, parameters });
    assert.deepEqual((await databases.fetchAll()).resources, [world.database.id]);
    const timed = world.database.containers.query("SELECT c.id FROM c WHERE c.defaultTtl = 10");
    assert.deepEqual((await timed.fetchAll()).resources, [{ id: container.id }]);
  });

  test("a query of a container that is not there is not found", async () => {
    const nowhere = world.database.container("nowhere");
    await assert.rejects(ask(nowhere, "SELECT * FROM c"), refusedWith(404));
  });
});
