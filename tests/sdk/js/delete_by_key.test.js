/** Deleting all items of a partition key: gone at the answer, and only those. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { ask, find, listIds, makeContainer, overHttpAndHttps, refusedWith } from "./harness.js";

const COUNT = "SELECT VALUE COUNT(1) FROM c";

/** Writes items with the ids 0, 1 and 2 under each of these keys. */
async function fill(container, ...keys) {
  for (const pk of keys) {
    for (const n of [0, 1, 2]) await container.items.create({ id: `${n}`, pk, n });
  }
}

/** How many items there are in all, and how many of the key `x`. */
async function counts(container) {
  return [...(await ask(container, COUNT)), ...(await ask(container, COUNT, { partitionKey: "x" }))];
}

overHttpAndHttps((world) => {
  test("all items of the key are gone, and others stay", async () => {
    const container = await makeContainer(world);
    await fill(container, "x", "y");
    await container.deleteAllItemsForPartitionKey("x");
    for (const n of [0, 1, 2]) {
      assert.equal(await find(container, `${n}`, "x"), undefined);
      assert.equal((await find(container, `${n}`, "y")).n, n);
    }
    assert.deepEqual(await ask(container, "SELECT VALUE c.pk FROM c"), ["y", "y", "y"]);
    assert.deepEqual(await listIds(container), ["0", "1", "2"]);
  });

  test("what is written later lives, and counts are right", async () => {
    const container = await makeContainer(world);
    await fill(container, "x", "y");
    await container.deleteAllItemsForPartitionKey("x");
    assert.deepEqual(await counts(container), [3, 0]);
    await container.items.create({ id: "0", pk: "x", n: "new" });
    await container.items.upsert({ id: "1", pk: "x", n: "new" });
    assert.deepEqual(await counts(container), [5, 2]);
    assert.equal((await find(container, "0", "x")).n, "new");
    assert.equal(await find(container, "2", "x"), undefined);
  });

  test("again, and for a key that nobody has", async () => {
    const container = await makeContainer(world);
    await fill(container, "x", "y");
    for (const key of ["nobody", "x", "x"]) await container.deleteAllItemsForPartitionKey(key);
    assert.deepEqual(await counts(container), [3, 0]);
    await fill(container, "x");
    await container.deleteAllItemsForPartitionKey("x");
    assert.deepEqual(await counts(container), [3, 0]);
  });

  for (const pk of ["", 7, true, null]) {
    test(`the key may be ${JSON.stringify(pk)}`, async () => {
      const container = await makeContainer(world);
      await container.items.create({ id: "a", pk });
      await container.items.create({ id: "b", pk: "x" });
      await container.deleteAllItemsForPartitionKey(pk);
      assert.deepEqual(await listIds(container), ["b"]);
    });
  }

  test("a hierarchical key is whole", async () => {
    const partitionKey = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
    const container = await makeContainer(world, { partitionKey });
    for (const user of [7, 8]) await container.items.create({ id: `u${user}`, tenant: "t", user });
    await container.deleteAllItemsForPartitionKey(["t", 7]);
    assert.deepEqual(await listIds(container), ["u8"]);
    await assert.rejects(container.deleteAllItemsForPartitionKey(["t"]), refusedWith(400));
    assert.deepEqual(await listIds(container), ["u8"]);
  });
});
