/** Databases and containers. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { NINETY_DAYS, listIds, makeContainer, overHttpAndHttps, refusedWith } from "./harness.js";

overHttpAndHttps((world, scheme) => {
  const listDatabases = async () =>
    (await world.client.databases.readAll().fetchAll()).resources.map(({ id }) => id);
  const listContainers = async () =>
    (await world.database.containers.readAll().fetchAll()).resources.map(({ id }) => id).sort();

  test("a database is created, read, listed and deleted", async () => {
    const id = `db-${randomUUID()}`;
    const { database, statusCode } = await world.client.databases.create({ id });
    assert.equal(statusCode, 201);

    assert.equal((await database.read()).resource.id, id);
    assert.ok((await listDatabases()).includes(id));

    assert.equal((await database.delete()).statusCode, 204);
    assert.ok(!(await listDatabases()).includes(id));
    await assert.rejects(database.read(), refusedWith(404));
  });

  test("a database name can be used once", async () => {
    const { id } = world.database;
    await assert.rejects(world.client.databases.create({ id }), refusedWith(409));
  });

  test("create if not exists finds what is there", async () => {
    const made = await makeContainer(world, { id: "c" });

    const { database, statusCode } = await world.client.databases.createIfNotExists({
      id: world.database.id,
    });
    assert.equal(statusCode, 200);
    const again = await database.containers.createIfNotExists({ id: "c", partitionKey: "/pk" });
    assert.equal(again.statusCode, 200);
    assert.equal(again.resource._rid, (await made.read()).resource._rid);
  });

  for (const [name, defaultTtl] of [["off", undefined], ["-1", -1], ["90 days", NINETY_DAYS]]) {
    test(`a container keeps its default ttl: ${name}`, async () => {
      const container = await makeContainer(world, { defaultTtl });

      const { resource } = await container.read();
      assert.equal(resource.defaultTtl, defaultTtl);
      assert.equal("defaultTtl" in resource, defaultTtl !== undefined);
    });
  }

  test("a container keeps its throughput", async () => {
    const container = await makeContainer(world, {
      partitionKey: { paths: ["/customerId"] },
      defaultTtl: NINETY_DAYS,
      throughput: 20000,
    });

    const { resource: offer } = await container.readOffer();
    assert.equal(offer.content.offerThroughput, 20000);
    assert.deepEqual((await container.read()).resource.partitionKey.paths, ["/customerId"]);
  });

  test("an offer can be read by itself", async () => {
    const container = await makeContainer(world, { throughput: 20000 });
    const { offer } = await container.readOffer();

    const { resource } = await offer.read();
    assert.equal(resource.content.offerThroughput, 20000);
    assert.equal(resource.resource, (await container.read()).resource._self);
  });

  test("an offer can be replaced", async () => {
    const container = await makeContainer(world, {});
    const { resource: old, offer } = await container.readOffer();

    old.content.offerThroughput = 700;
    const { resource } = await offer.replace(old);
    assert.equal(resource.content.offerThroughput, 700);
    old.content.offerThroughput = 450;
    await assert.rejects(offer.replace(old), refusedWith(400));
    assert.equal((await offer.read()).resource.content.offerThroughput, 700);
  });

  test("a large throughput spreads the container over ranges", async () => {
    const container = await makeContainer(world, { throughput: 20000 });
    const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
    assert.equal(ranges.length, 4);

    const written = Array.from({ length: 40 }, (_, number) => `item-${number}`).sort();
    for (const id of written) await container.items.create({ id, pk: id });
    assert.deepEqual(await listIds(container), written);
  });

  test("a container's definition comes back with its defaults", async () => {
    const { resource } = await (await makeContainer(world)).read();

    assert.deepEqual(resource.partitionKey, { paths: ["/pk"], kind: "Hash", version: 2 });
    assert.equal(resource.indexingPolicy.indexingMode, "consistent");
    assert.deepEqual(resource.indexingPolicy.includedPaths, [{ path: "/*" }]);
    assert.match(resource._self, /^dbs\/.*\/colls\/.*\/$/);
    assert.ok(resource._etag && resource._rid && resource._ts > 0);
  });

  test("containers are listed", async () => {
    const made = [await makeContainer(world), await makeContainer(world)];
    assert.deepEqual(await listContainers(), made.map(({ id }) => id).sort());
  });

  test("a container name can be used once", async () => {
    const { id } = await makeContainer(world);
    await assert.rejects(makeContainer(world, { id }), refusedWith(409));
  });

  test("a container is replaced", async () => {
    const container = await makeContainer(world);

    const { resource: definition } = await container.read();
    await container.replace({ ...definition, defaultTtl: 3600 });
    assert.equal((await container.read()).resource.defaultTtl, 3600);

    await container.replace(definition);
    assert.ok(!("defaultTtl" in (await container.read()).resource));
  });

  test("a default ttl of null turns ttl off", async () => {
    const container = await makeContainer(world, { defaultTtl: 3600 });

    const { resource: definition } = await container.read();
    await container.replace({ ...definition, defaultTtl: null });
    assert.ok(!("defaultTtl" in (await container.read()).resource));
  });

  test("a container's partition key cannot be replaced", async () => {
    const container = await makeContainer(world);
    const other = { id: container.id, partitionKey: { paths: ["/other"] } };
    await assert.rejects(container.replace(other), refusedWith(400));
  });

  test("a deleted container is gone with its items", async () => {
    const container = await makeContainer(world);
    await container.items.create({ id: "a", pk: "x" });
    assert.equal((await container.delete()).statusCode, 204);

    assert.deepEqual(await listContainers(), []);
    await assert.rejects(container.read(), refusedWith(404));
    assert.equal((await container.item("a", "x").read()).statusCode, 404);

    const again = await makeContainer(world, { id: container.id });
    assert.deepEqual(await listIds(again), []);
  });

  for (const defaultTtl of [0, -10]) {
    test(`a default ttl is -1 or positive, not ${defaultTtl}`, async () => {
      await assert.rejects(makeContainer(world, { defaultTtl }), refusedWith(400));
    });
  }

  test("a wrong key is refused", async () => {
    const wrongKey = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXk=";
    const client = world.server.client(scheme, wrongKey);
    await assert.rejects(client.databases.readAll().fetchAll(), refusedWith(401));
    client.dispose();
  });
});
