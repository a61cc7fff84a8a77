/** Transactional batches, which are all or nothing, and bulk, which is not. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { find, listIds, makeContainer, overHttpAndHttps, refusedWith } from "./harness.js";

const create = (id, more = {}) => withBody("Create", { id, pk: "x", ...more });
const upsert = (id, more = {}) => withBody("Upsert", { id, pk: "x", ...more });
const replace = (id, more = {}) => ({ id, ...withBody("Replace", { id, pk: "x", ...more }) });
const read = (id) => ({ operationType: "Read", id });
const remove = (id) => ({ operationType: "Delete", id });
const patch = (id, operations, more = {}) => ({ id, ...withBody("Patch", { operations, ...more }) });
const withBody = (operationType, resourceBody) => ({ operationType, resourceBody });

/** An operation of a patch. */
const ADD = { op: "add", path: "/n", value: 1 };

const statuses = (results) => results.map((result) => result.statusCode);
const numbers = (count) => Array.from({ length: count }, (_, n) => n);

/** The operation, with the key of its item; `{}` is that of one without. */
function withKey(operation) {
  const { pk = {} } = operation.resourceBody ?? {};
  return { partitionKey: pk, ...operation };
}

/** Matches the error of a batch that was refused as a whole, which has the answer as its cause. */
const wholeRefusedWith = (code) => ({ cause }) => refusedWith(code)(cause);

/** What `executeBulkOperations` says of each: its status, also where that is an error. */
const outcomes = (results) =>
  results.map(({ response, error }) => response?.statusCode ?? error.code);

/** The kinds of bulk, each with how it tells the statuses. */
const BULKS = {
  bulk: async (container, operations) => statuses(await container.items.bulk(operations)),
  // This one takes no key from the item.
  executeBulkOperations: async (container, operations) =>
    outcomes(await container.items.executeBulkOperations(operations.map(withKey))),
};

overHttpAndHttps((world) => {
  /** A container of four ranges. */
  const makeWide = (definition) => makeContainer(world, { throughput: 20000, ...definition });

  async function assertFails(container, operations, expected) {
    const before = (await container.items.readAll().fetchAll()).resources;
    const { code, result } = await container.items.batch(operations, "x");
    assert.equal(code, 207);
    assert.deepEqual(statuses(result), expected);
    assert.deepEqual((await container.items.readAll().fetchAll()).resources, before);
  }

  test("a batch has every kind of operation", async () => {
    const container = await makeContainer(world);
    await container.items.create({ id: "old", pk: "x" });
    const { code, result } = await container.items.batch(
      [create("a", { n: 1 }), upsert("b"), replace("old", { n: 2 }), read("a"), remove("b")],
      "x",
    );
    assert.equal(code, 200);
    assert.deepEqual(statuses(result), [201, 201, 200, 200, 204]);
    assert.deepEqual(result[0].resourceBody, result[3].resourceBody);
    assert.equal(result[0].eTag, result[0].resourceBody._etag);
    assert.equal(result[4].resourceBody, undefined);
    assert.deepEqual(await listIds(container), ["a", "old"]);
  });

  test("an operation of a batch sees those before it", async () => {
    const container = await makeContainer(world);
    const { result } = await container.items.batch(
      [create("a", { n: 1 }), replace("a", { n: 2 }), read("a"), remove("a"), upsert("a", { n: 3 })],
      "x",
    );
    assert.deepEqual(statuses(result), [201, 200, 200, 204, 201]);
    assert.equal(result[2].resourceBody.n, 2);
    assert.equal((await find(container, "a", "x")).n, 3);
  });

  test("one operation that fails takes the batch with it", async () => {
    const container = await makeContainer(world);
    await container.items.create({ id: "old", pk: "x", n: 1 });
    for (const [failing, status] of [
      [create("old"), 409],
      [read("nobody"), 404],
      [remove("nobody"), 404],
      [replace("nobody"), 404],
      [create("b", { ttl: 0 }), 400],
      [create("b", { pk: "y" }), 400],
      [{ ...replace("old"), ifMatch: "wrong" }, 412],
    ]) {
      await assertFails(container, [create("a"), failing, create("c")], [424, status, 424]);
    }
  });

  test("a batch that is wrong as a whole is refused", async () => {
    const container = await makeContainer(world);
    const refused = (operations, code) =>
      assert.rejects(container.items.batch(operations, "x"), wholeRefusedWith(code));
    await assert.rejects(
      container.items.batch(numbers(101).map((n) => create(`${n}`)), "x"),
      /more than 100 operations/,
    );
    await refused([create("a"), { ...create("b", { pk: "y" }), partitionKey: '["y"]' }], 400);
    await refused([create("a", { text: "x".repeat(2_300_000) })], 413);
    assert.deepEqual(await listIds(container), []);
  });

  test("a batch may have no content in its answers", async () => {
    const container = await makeContainer(world);
    const options = { contentResponseOnWriteEnabled: false };
    const { result } = await container.items.batch([create("a"), read("a")], "x", options);
    assert.equal(result[0].resourceBody, undefined);
    assert.ok(result[0].eTag);
    assert.equal(result[1].resourceBody.id, "a");
  });

  test("the items of a batch expire exactly", async () => {
    const container = await makeContainer(world, { defaultTtl: 100 });
    const operations = [create("short", { ttl: 10 }), create("default"), create("never", { ttl: -1 })];
    await container.items.batch(operations, "x");
    await world.server.advance(9);
    assert.deepEqual(await listIds(container), ["default", "never", "short"]);
    await world.server.advance(1);
    assert.deepEqual(await listIds(container), ["default", "never"]);
    await assertFails(container, [create("b"), read("short")], [424, 404]);
    await world.server.advance(90);
    assert.deepEqual(await listIds(container), ["never"]);
    const { result } = await container.items.batch([create("default"), read("default")], "x");
    assert.deepEqual(statuses(result), [201, 200]);
  });

  test("a batch may be in a hierarchical partition", async () => {
    const partitionKey = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
    const container = await makeContainer(world, { partitionKey });
    const operations = [withBody("Create", { id: "a", tenant: "t", user: 7 }), read("a")];
    const { result } = await container.items.batch(operations, ["t", 7]);
    assert.deepEqual(statuses(result), [201, 200]);
  });

  for (const [name, bulk] of Object.entries(BULKS)) {
    test(`${name}: every kind of operation, in every range`, async () => {
      const container = await makeWide();
      const many = numbers(90);
      const at = (n, operation) => ({ partitionKey: `k${n}`, ...operation });
      assert.deepEqual(
        await bulk(container, many.map((n) => create("a", { pk: `k${n}` }))),
        many.map(() => 201),
      );
      const mixed = many.map((n) =>
        at(n, [read("a"), replace("a", { pk: `k${n}`, n }), remove("a")][n % 3]));
      assert.deepEqual(await bulk(container, mixed), many.map((n) => [200, 200, 204][n % 3]));
      assert.equal((await listIds(container)).length, 60);
      assert.equal((await find(container, "a", "k4")).n, 4);
    });

    test(`${name}: one operation that fails does so alone`, async () => {
      const container = await makeWide();
      await container.items.create({ id: "old", pk: "x" });
      const at = (operation) => ({ partitionKey: "x", ...operation });
      const operations = [
        create("a"), create("old"), at(read("nobody")), create("b", { ttl: -10 }),
        { ...at(replace("old")), ifMatch: "wrong" }, create("c"),
      ];
      assert.deepEqual(await bulk(container, operations), [201, 409, 404, 400, 412, 201]);
      assert.deepEqual(await listIds(container), ["a", "c", "old"]);
    });

    test(`${name}: keys of every kind`, async () => {
      const container = await makeWide();
      const keys = ["x", "", 0, 1.5, true, null];
      const operations = keys.map((pk, n) => create(`${n}`, { pk }));
      operations.push(withBody("Create", { id: "none" }));
      assert.deepEqual(await bulk(container, operations), operations.map(() => 201));
      for (const [n, key] of keys.entries()) {
        assert.ok(await find(container, `${n}`, key), `${key}`);
      }
      assert.ok(await find(container, "none", undefined));
    });

    test(`${name}: items expire exactly`, async () => {
      const container = await makeWide({ defaultTtl: 100 });
      const operations = numbers(40).map((n) => create(`${n}`, { pk: `k${n}`, ttl: n < 20 ? 10 : 50 }));
      await bulk(container, operations);
      await world.server.advance(9);
      assert.equal((await listIds(container)).length, 40);
      await world.server.advance(1);
      assert.equal((await listIds(container)).length, 20);
      const again = [create("0", { pk: "k0" }), { partitionKey: "k1", ...read("1") }];
      assert.deepEqual(await bulk(container, again), [201, 404]);
      await world.server.advance(40);
      assert.deepEqual(await listIds(container), ["0"]);
    });
  }

  test("executeBulkOperations takes any number", async () => {
    const container = await makeWide();
    const operations = numbers(1000).map((n) => create(`${n}`, { pk: `k${n % 50}` }));
    const results = await container.items.executeBulkOperations(operations.map(withKey));
    assert.deepEqual(outcomes(results), operations.map(() => 201));
    assert.equal(results[7].response.resourceBody.id, "7");
    assert.equal((await listIds(container)).length, 1000);
  });

  test("bulk may end with the first failure, and keeps what came before", async () => {
    const container = await makeContainer(world);
    const operations = [create("a"), create("a"), create("b")];
    const results = await container.items.bulk(operations, { continueOnError: false });
    assert.deepEqual(statuses(results), [201, 409, 424]);
    assert.deepEqual(await listIds(container), ["a"]);
  });

  test("a batch has patches", async () => {
    const container = await makeContainer(world);
    const more = { op: "incr", path: "/n", value: 2 };
    const condition = "from c where c.n = 3";
    const bad = [create("a"), patch("a", [ADD]), patch("a", [more], { condition }), read("a")];
    await assertFails(container, bad, [424, 424, 412, 424]);
    const good = [create("a"), patch("a", [ADD]), patch("a", [more]), read("a")];
    const { result } = await container.items.batch(good, "x");
    assert.deepEqual(statuses(result), [201, 200, 200, 200]);
    assert.equal(result[3].resourceBody.n, 3);
    await assertFails(container, [create("b"), patch("b", [ADD]), patch("c", [ADD])], [424, 424, 404]);
  });

  for (const [name, bulk] of Object.entries(BULKS)) {
    test(`${name} has patches`, async () => {
      const container = await makeWide();
      const patchWithKey = (id) => ({ ...patch(id, [ADD]), partitionKey: "x" });
      const operations = [create("a"), patchWithKey("a"), patchWithKey("b")];
      assert.deepEqual(await bulk(container, operations), [201, 200, 404]);
      assert.equal((await find(container, "a", "x")).n, 1);
    });
  }
});
