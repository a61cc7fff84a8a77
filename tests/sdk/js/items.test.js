/** Items: create, read, upsert, replace, delete, list, and what may go wrong. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { find, listIds, makeContainer, overHttpAndHttps, refusedWith } from "./harness.js";

const onlyIf = (etag) => ({ accessCondition: { type: "IfMatch", condition: etag } });

overHttpAndHttps((world) => {
  test("an item is created, read, replaced and deleted", async () => {
    const container = await makeContainer(world);
    const { item, statusCode } = await container.items.create({ id: "a", pk: "x", colour: "red" });
    assert.equal(statusCode, 201);
    assert.equal((await find(container, "a", "x")).colour, "red");

    assert.equal((await item.replace({ id: "a", pk: "x", colour: "blue" })).statusCode, 200);
    assert.equal((await find(container, "a", "x")).colour, "blue");

    assert.equal((await container.item("a", "x").delete()).statusCode, 204);
    assert.equal(await find(container, "a", "x"), undefined);
  });

  test("an upsert creates and then replaces", async () => {
    const container = await makeContainer(world);
    const first = await container.items.upsert({ id: "a", pk: "x", colour: "red" });
    const second = await container.items.upsert({ id: "a", pk: "x", colour: "blue" });

    assert.deepEqual([first.statusCode, second.statusCode], [201, 200]);
    assert.equal((await find(container, "a", "x")).colour, "blue");
  });

  test("an item comes back as it was sent", async () => {
    const container = await makeContainer(world);
    const item = {
      id: "a",
      pk: "x",
      text: 'Zoë 你好 🪰 " \\ \n \u0001',
      numbers: [0, -1, 1.5, 1e21, 2 ** 53, -(2 ** 31)],
      nothing: null,
      flags: [true, false],
      nested: { empty: {}, list: [[], [1, [2]]], "": "no name" },
    };
    await container.items.create(item);

    const read = await find(container, "a", "x");
    const ours = Object.fromEntries(Object.entries(read).filter(([name]) => !name.startsWith("_")));
    assert.deepEqual(ours, item);
  });

  test("a large item comes back", async () => {
    const container = await makeContainer(world);
    const text = "ä".repeat(500_000);
    await container.items.create({ id: "a", pk: "x", text });
    assert.ok((await find(container, "a", "x")).text === text);
  });

  test("an item without an id gets one", async () => {
    const container = await makeContainer(world);
    const { resource } = await container.items.create({ pk: "x" });
    assert.equal((await find(container, resource.id, "x")).id, resource.id);
  });

  test("an item has its system properties", async () => {
    const container = await makeContainer(world);
    const { resource: item } = await container.items.create({ id: "a", pk: "x" });

    assert.equal(item._ts, await world.server.now());
    assert.equal(item._attachments, "attachments/");
    assert.equal(item._self, `${(await container.read()).resource._self}docs/${item._rid}/`);
    assert.match(item._etag, /^".+"$/);
    assert.deepEqual(await find(container, "a", "x"), item);
  });

  test("all items are listed page by page", async () => {
    const container = await makeContainer(world);
    const ids = Array.from({ length: 10 }, (_, number) => `${number}`);
    for (const id of ids) await container.items.create({ id, pk: `pk-${id % 3}` });

    const pages = [];
    const list = container.items.readAll({ maxItemCount: 4 });
    while (list.hasMoreResults()) pages.push((await list.fetchNext()).resources);
    assert.deepEqual(pages.map((page) => page.length), [4, 4, 2]);
    assert.deepEqual(pages.flat().map(({ id }) => id).sort(), ids);
  });

  test("the list of an empty container is empty", async () => {
    assert.deepEqual(await listIds(await makeContainer(world)), []);
  });

  test("a missing item is not found", async () => {
    const container = await makeContainer(world);
    const item = container.item("a", "x");

    const { statusCode, resource } = await item.read();
    assert.deepEqual([statusCode, resource], [404, undefined]);
    await assert.rejects(item.replace({ id: "a", pk: "x" }), refusedWith(404));
    await assert.rejects(item.delete(), refusedWith(404));
  });

  test("an id can be used once in a partition", async () => {
    const container = await makeContainer(world);
    await container.items.create({ id: "a", pk: "x" });
    await assert.rejects(container.items.create({ id: "a", pk: "x" }), refusedWith(409));
    await container.items.create({ id: "a", pk: "y" });
  });

  test("an old etag stops replace, upsert and delete", async () => {
    const container = await makeContainer(world);
    const { item, resource: old } = await container.items.create({ id: "a", pk: "x", version: 1 });
    const { resource: current } = await item.replace({ id: "a", pk: "x", version: 2 });
    assert.notEqual(current._etag, old._etag);

    const third = { id: "a", pk: "x", version: 3 };
    await assert.rejects(item.replace(third, onlyIf(old._etag)), refusedWith(412));
    await assert.rejects(container.items.upsert(third, onlyIf(old._etag)), refusedWith(412));
    await assert.rejects(item.delete(onlyIf(old._etag)), refusedWith(412));
    assert.equal((await find(container, "a", "x")).version, 2);
  });

  test("the current etag lets a write through", async () => {
    const container = await makeContainer(world);
    const { item, resource } = await container.items.create({ id: "a", pk: "x", version: 1 });

    const replaced = await item.replace({ ...resource, version: 2 }, onlyIf(resource._etag));
    assert.equal((await find(container, "a", "x")).version, 2);
    assert.equal((await item.delete(onlyIf(replaced.etag))).statusCode, 204);
  });

  test("an item is patched", async () => {
    const container = await makeContainer(world);
    const { item, etag } = await container.items.create({ id: "a", pk: "x", n: 1 });
    const operations = [
      { op: "incr", path: "/n", value: 2 },
      { op: "set", path: "/colour", value: "red" },
      { op: "move", from: "/colour", path: "/paint" },
    ];
    // As an array, and as an object with a condition.
    const { resource } = await item.patch(operations, onlyIf(etag));
    assert.deepEqual([resource.n, resource.paint, resource.colour], [3, "red", undefined]);
    const condition = "from c where c.n = 3";
    await assert.rejects(item.patch(operations, onlyIf(etag)), refusedWith(412));
    assert.equal((await item.patch({ condition, operations })).resource.n, 5);
    await assert.rejects(item.patch({ condition, operations }), refusedWith(412));
    await assert.rejects(container.item("b", "x").patch(operations), refusedWith(404));
    await assert.rejects(
      item.patch([{ op: "replace", path: "/none", value: 1 }]),
      refusedWith(400),
    );
  });

  test("an unchanged item is not sent again", async () => {
    const container = await makeContainer(world);
    const { item, etag } = await container.items.create({ id: "a", pk: "x" });
    const onlyIfChanged = { accessCondition: { type: "IfNoneMatch", condition: etag } };

    const unchanged = await item.read(onlyIfChanged);
    assert.equal(unchanged.statusCode, 304);
    assert.ok(!unchanged.resource);
    await item.replace({ id: "a", pk: "x", changed: true });
    const changed = await item.read(onlyIfChanged);
    assert.equal(changed.statusCode, 200);
    assert.equal(changed.resource.changed, true);
  });

  for (const id of [
    "with space",
    "plus+and&ampersand",
    "percent%20 and 100%",
    "\"quotes\" and 'more'",
    "Zoë 你好 🪰",
    "semi;colon:comma,at@equals=",
    "(brackets)[]{}<>|^`~",
    "$dollar!star*",
    "dots..and.dots",
    "-_-",
    "a".repeat(255),
  ]) {
    test(`an id may hold special characters: ${id}`, async () => {
      const container = await makeContainer(world);
      const { item } = await container.items.create({ id, pk: "x" });
      assert.equal((await find(container, id, "x")).id, id);

      await item.replace({ id, pk: "x", replaced: true });
      await container.items.upsert({ id, pk: "x", replaced: "twice" });
      assert.equal((await find(container, id, "x")).replaced, "twice");
      assert.deepEqual(await listIds(container), [id]);

      await item.delete();
      assert.deepEqual(await listIds(container), []);
    });
  }

  for (const name of ["with space", "Zoë 你好", "plus+percent%25", "quote'quote\""]) {
    test(`databases and containers may have special names: ${name}`, async () => {
      const { database } = await world.client.databases.create({ id: name });
      try {
        const container = await makeContainer({ database }, { id: name });
        await container.items.create({ id: name, pk: name });
        assert.equal((await find(container, name, name)).pk, name);
      } finally {
        await database.delete();
      }
    });
  }

  test("the response headers tell about the request", async () => {
    const container = await makeContainer(world);
    const created = await container.items.create({ id: "a", pk: "x" });
    const read = await created.item.read();
    const containerRid = (await container.read()).resource._rid;

    for (const response of [created, read]) {
      assert.ok(response.requestCharge > 0);
      assert.equal(response.etag, response.resource._etag);
      assert.ok(response.activityId);
      assert.match(response.headers["x-ms-session-token"], /^0:/);
      assert.equal(response.headers["x-ms-content-path"], containerRid);
      assert.match(response.headers["x-ms-alt-content-path"], /^dbs\//);
    }
  });

  test("every write moves the session token", async () => {
    const lsn = ({ headers }) => Number(headers["x-ms-session-token"].split("#")[1]);
    const container = await makeContainer(world);

    const created = await container.items.create({ id: "a", pk: "x" });
    const replaced = await created.item.replace({ id: "a", pk: "x" });
    assert.ok(lsn(replaced) > lsn(created));
    assert.ok(lsn(await created.item.read()) >= lsn(replaced));
  });

  test("a failure tells its charge and activity", async () => {
    const container = await makeContainer(world);
    await assert.rejects(container.item("a", "x").delete(), (error) => {
      assert.equal(error.code, 404);
      assert.equal(error.body.code, "NotFound");
      assert.ok(Number(error.headers["x-ms-request-charge"]) > 0);
      assert.ok(error.activityId);
      return true;
    });
  });

  test("a unique key is unique in its partition", async () => {
    const container = await makeContainer(world, {
      uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] },
    });
    const email = "zoe@example.com";
    await container.items.create({ id: "a", pk: "x", email });

    await assert.rejects(container.items.create({ id: "b", pk: "x", email }), refusedWith(409));
    await container.items.create({ id: "b", pk: "y", email });

    await container.item("a", "x").delete();
    await container.items.create({ id: "b", pk: "x", email });
  });
});
