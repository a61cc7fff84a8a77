/**
 * A dayfly server for the tests to talk to, its clock, and a client.
 *
 * All tests run twice: over http with a server that keeps its data in memory,
 * and over https with one that keeps it on disk.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import https from "node:https";
import { createInterface } from "node:readline";
import { after, afterEach, before, beforeEach, describe } from "node:test";
import { fileURLToPath } from "node:url";

import { CosmosClient } from "@azure/cosmos";

const SERVE = fileURLToPath(new URL("../serve", import.meta.url));

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
      before(async () => {
        world.server = await Server.start(scheme === "http" ? "--memory" : "--on-disk");
        world.client = world.server.client(scheme);
      });
      after(async () => {
        world.client?.dispose();
        await world.server?.stop();
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

/** A running server. Its clock stands still until a test moves it. */
export class Server {
  static async start(...storage) {
    const server = new Server();
    server.process = spawn(SERVE, storage, { stdio: ["pipe", "pipe", "inherit"] });
    await server.readBanner();
    await server.setClock({ frozen: true });
    return server;
  }

  stop() {
    this.process.stdin.end();
    return once(this.process, "exit");
  }

  endpoint(scheme) {
    return `${scheme}://localhost:${this.port}/`;
  }

  client(scheme, key = this.key) {
    const agent =
      scheme === "https"
        ? new https.Agent({ keepAlive: true, rejectUnauthorized: false })
        : undefined;
    const endpoint = this.endpoint(scheme);
    return new CosmosClient({ endpoint, key, agent, consistencyLevel: "Session" });
  }

  /** Moves the clock forward, without waiting. */
  advance(seconds) {
    return this.setClock({ advanceSeconds: seconds });
  }

  async now() {
    return (await this.clock()).now;
  }

  setClock(change) {
    return this.clock({ method: "POST", body: JSON.stringify(change) });
  }

  async clock(request = {}) {
    const response = await fetch(`http://127.0.0.1:${this.port}/_admin/v1/clock`, {
      ...request,
      headers: { authorization: `Bearer ${this.key}`, "content-type": "application/json" },
    });
    if (!response.ok) throw new Error(`The clock answered ${await response.text()}`);
    return response.json();
  }

  async readBanner() {
    let banner = "";
    for await (const line of createInterface({ input: this.process.stdout })) {
      banner += `${line}\n`;
      if (line.trim() === "Started") {
        const found = /AccountEndpoint=https:\/\/localhost:(\d+)\/;AccountKey=([^;]+);/.exec(banner);
        [, this.port, this.key] = found;
        return;
      }
    }
    this.stop();
    throw new Error(`${process.env.DAYFLY_BIN} ended before it had started:\n${banner}`);
  }
}
