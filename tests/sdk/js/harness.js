/**
 * A dayfly server for the tests to talk to, its clock, and a client.
 *
 * All tests run twice: over http with a server that keeps its data in memory,
 * and over https with one that keeps it on disk.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe } from "node:test";

import { CosmosClient } from "@azure/cosmos";
import { Dayfly } from "dayfly-test";

export const DAY = 24 * 60 * 60;
export const NINETY_DAYS = 90 * DAY;
export const YEAR = 365 * DAY;

/**
 * Declares the tests of `body` once for each scheme. `body` is given what the
 * tests work with: `server`, `client`, and a `database` new for every test.
 */
export function overHttpAndHttps(body) {
  for (const scheme of ["http", "https"]) {
    describe(scheme, () => {
      const world = {};
      let folder;
      before(async () => {
        folder = await mkdtemp(join(tmpdir(), "dayfly-"));
        const storage = scheme === "http" ? ["--memory"] : ["--data", folder];
        world.server = await Server.start(...storage);
        world.client = world.server.client(scheme);
      });
      after(async () => {
        world.client?.dispose();
        await world.server?.stop();
        await rm(folder, { recursive: true });
      });
      beforeEach(async () => {
        const { database } = await world.client.databases.create({ id: `db-${randomUUID()}` });
        world.database = database;
      });
      afterEach(() => world.database.delete());
      body(world, scheme);
    });
  }
}

/** Makes a container whose partition key is `/pk`, unless told otherwise. */
export async function makeContainer(world, definition = {}) {
  const { container } = await world.database.containers.create({
    id: `c-${randomUUID()}`,
    partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 },
    ...definition,
  });
  return container;
}

/** The ids of all items, in order of their names. */
export async function listIds(container) {
  const { resources } = await container.items.readAll().fetchAll();
  return resources.map((item) => item.id).sort();
}

/** All rows of a query. Parameters are an object of names and values. */
export async function ask(container, query, options = {}, parameters = {}) {
  return (await asked(container, query, options, parameters).fetchAll()).resources;
}

/** The pages of a query, each with the token of the next, if there is one. */
export async function askByPage(container, query, options = {}) {
  const pages = [];
  const iterator = asked(container, query, options);
  while (iterator.hasMoreResults()) {
    const { resources, continuationToken, hasMoreResults } = await iterator.fetchNext();
    pages.push({ rows: resources ?? [], token: hasMoreResults ? continuationToken : undefined });
  }
  return pages;
}

function asked(container, query, options, parameters = {}) {
  const named = Object.entries(parameters).map(([name, value]) => ({ name: `@${name}`, value }));
  // The SDK keeps its own state in the options.
  return container.items.query({ query, parameters: named }, { ...options });
}

/** The item, or undefined where the SDK says 404. */
export async function find(container, id, partitionKey) {
  const { resource, statusCode } = await container.item(id, partitionKey).read();
  return statusCode === 404 ? undefined : resource;
}

/** Matches the error of a request that was refused with `code`. */
export function refusedWith(code) {
  return (error) => {
    if (error.code === code) return true;
    throw error;
  };
}

/** A running server, over http and https, and clients for it. */
export class Server extends Dayfly {
  address(scheme) {
    return this.endpoint.replace("http", scheme);
  }

  client(scheme, key = this.key) {
    const agent =
      scheme === "https"
        ? new https.Agent({ keepAlive: true, rejectUnauthorized: false })
        : undefined;
    const endpoint = this.address(scheme);
    return new CosmosClient({ endpoint, key, agent, consistencyLevel: "Session" });
  }
}
