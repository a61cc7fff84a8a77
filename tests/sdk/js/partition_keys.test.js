/** Partition keys of every kind the SDK can send. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { find, listIds, makeContainer, overHttpAndHttps, refusedWith } from "./harness.js";

/** Takes the item through all point operations under its partition key. */
async function assertItemLives(container, item, partitionKey) {
  const { id } = item;
  await container.items.create(item);
  assert.equal((await find(container, id, partitionKey)).id, id);

  await container.item(id, partitionKey).replace({ ...item, replaced: true });
  await container.items.upsert({ ...item, replaced: "twice" });
  assert.equal((await find(container, id, partitionKey)).replaced, "twice");

  await container.item(id, partitionKey).delete();
  assert.equal(await find(container, id, partitionKey), undefined);
}

overHttpAndHttps((world) => {
  const values = [
    "x", "", "Zoë 你好 🪰", "\"quoted\" \\ 'text'", "a".repeat(500),
    0, 1, -7, 1.5, 1e300, true, false, null,
  ];
  for (const value of values) {
    const shown = JSON.stringify(value).slice(0, 30);
    test(`a key may be any string, number, boolean or null: ${shown}`, async () => {
      await assertItemLives(await makeContainer(world), { id: "a", pk: value }, value);
    });
  }

  test("a key may be missing", async () => {
    await assertItemLives(await makeContainer(world), { id: "a" }, undefined);
  });

  test("a key may be nested", async () => {
    const container = await makeContainer(world, { partitionKey: "/address/city" });
    await assertItemLives(container, { id: "a", address: { city: "Bern" } }, "Bern");
    await assertItemLives(container, { id: "a", address: {} }, undefined);
  });

  test("a key path may be quoted", async () => {
    const container = await makeContainer(world, { partitionKey: '/"postal code"' });
    await assertItemLives(container, { id: "a", "postal code": 3000 }, 3000);
  });

  test("a key may be hierarchical", async () => {
    const container = await makeContainer(world, {
      partitionKey: {
        paths: ["/tenant", "/user", "/session/id"],
        kind: "MultiHash",
        version: 2,
      },
    });
    const item = { id: "a", tenant: "t", user: 7, session: { id: "s" } };
    await assertItemLives(container, item, ["t", 7, "s"]);
  });

  test("a key without a version is of version 1", async () => {
    const container = await makeContainer(world, { partitionKey: "/pk" });
    for (const value of ["x", 1, true]) await assertItemLives(container, { id: "a", pk: value }, value);
    assert.notEqual((await container.read()).resource.partitionKey.version, 2);
  });

  test("a container need not have a key", async () => {
    const container = await makeContainer(world, { partitionKey: undefined });
    await assertItemLives(container, { id: "a" }, undefined);
  });

  test("the same id in every kind of partition is another item", async () => {
    const container = await makeContainer(world);
    const keys = { string: "1", number: 1, true: true, null: null, missing: undefined };
    for (const [kind, pk] of Object.entries(keys)) await container.items.create({ id: "a", pk, kind });

    for (const [kind, pk] of Object.entries(keys)) {
      assert.equal((await find(container, "a", pk)).kind, kind);
    }
    assert.equal((await listIds(container)).length, 5);
  });

  test("an item is not found under another key", async () => {
    const container = await makeContainer(world);
    await container.items.create({ id: "a", pk: "x" });
    assert.equal(await find(container, "a", "y"), undefined);
    await assert.rejects(container.item("a", "y").delete(), refusedWith(404));
  });

  test("a hierarchical key must be complete", async () => {
    const container = await makeContainer(world, {
      partitionKey: { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 },
    });
    await container.items.create({ id: "a", tenant: "t", user: "u" });
    await assert.rejects(container.item("a", ["t"]).read(), refusedWith(400));
  });
});
