/** A Nest application has its containers made and injected by @nestjs/azure-database. */
import "reflect-metadata";

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import database from "@nestjs/azure-database";
import common from "@nestjs/common";
import core from "@nestjs/core";
import { startDayfly } from "dayfly-test";

const { AzureCosmosDbModule, CosmosDateTime, CosmosPartitionKey, CosmosUniqueKey, InjectModel } = database;

const DAY = 24 * 60 * 60;

let dayfly;
before(async () => { dayfly = await startDayfly(); });
beforeEach(() => dayfly.reset());
after(() => dayfly.stop());

/** What a compiler makes of decorators. */
function decorate(target, property, type, ...decorators) {
  if (property) Reflect.defineMetadata("design:type", type, target.prototype, property);
  for (const each of decorators) each(property ? target.prototype : target, property);
}

class Event {}
decorate(Event, undefined, undefined, CosmosPartitionKey("city"));
decorate(Event, "at", Date, CosmosDateTime());
decorate(Event, "ticket", String, CosmosUniqueKey());

class Events {
  constructor(container) {
    this.container = container;
  }

  async add(event) {
    return (await this.container.items.create(event)).resource;
  }

  async after(date) {
    const query = "SELECT VALUE e.id FROM e WHERE e.at > @date ORDER BY e.at";
    const parameters = [{ name: "@date", value: date }];
    return (await this.container.items.query({ query, parameters }).fetchAll()).resources;
  }

  async keep(seconds) {
    const { resource } = await this.container.read();
    await this.container.replace({ ...resource, defaultTtl: seconds });
  }
}
common.Injectable()(Events);
InjectModel(Event)(Events, undefined, 0);

/** Runs `body` with the events of a new application. */
async function withEvents(body) {
  class Application {}
  const options = { dbName: "party", endpoint: dayfly.endpoint, key: dayfly.key, retryAttempts: 1 };
  const imports = [
    AzureCosmosDbModule.forRoot(options),
    AzureCosmosDbModule.forFeature([{ dto: Event, collection: "events" }]),
  ];
  common.Module({ imports, providers: [Events] })(Application);
  const application = await core.NestFactory.createApplicationContext(Application, {
    logger: false,
    abortOnError: false,
  });
  try {
    await body(application.get(Events));
  } finally {
    await application.close();
  }
}

test("the container is as the decorators say", async () => {
  await withEvents(async ({ container }) => {
    const { resource } = await container.read();
    assert.deepEqual(resource.partitionKey.paths, ["/city"]);
    assert.deepEqual(resource.uniqueKeyPolicy.uniqueKeys, [{ paths: ["/ticket"] }]);
    assert.equal(resource.indexingPolicy.includedPaths[0].path, "/*");
  });
});

test("items are kept for the next start, in the order of their dates", async () => {
  await withEvents(async (events) => {
    for (const day of [3, 1, 2]) {
      const at = new Date(Date.UTC(2026, 0, day));
      await events.add({ id: `day ${day}`, city: `city ${day}`, ticket: `${day}`, at });
    }
  });
  await withEvents(async (events) => {
    assert.deepEqual(await events.after("2026-01-01T12:00:00.000Z"), ["day 2", "day 3"]);
  });
});

test("a unique key is free again when its owner has expired", async () => {
  await withEvents(async (events) => {
    await events.keep(-1);
    await events.add({ id: "a", city: "Bern", ticket: "1", at: "2026-01-01", ttl: DAY });
    const again = { id: "b", city: "Bern", ticket: "1", at: "2026-01-02" };
    await dayfly.advance(DAY - 1);
    await assert.rejects(events.add(again), { code: 409 });
    await dayfly.advance(1);
    await events.add(again);
    assert.deepEqual(await events.after("2025"), ["b"]);
  });
});
