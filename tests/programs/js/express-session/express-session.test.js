/** An Express application keeps its sessions here, by express-session-cosmosdb. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { dirname } from "node:path";
import { after, before, beforeEach, test } from "node:test";

import { CosmosClient } from "@azure/cosmos";
import { startDayfly } from "dayfly-test";
import express from "express";
import session from "express-session";
import stores from "express-session-cosmosdb";

const MINUTES = 60;
const HOUR = 60 * MINUTES;

// Its client, version 3 of the SDK, takes no http. The runner says whom Node.js trusts.
const TLS = ["--tls-dir", dirname(process.env.NODE_EXTRA_CA_CERTS)];

let dayfly;
let endpoint;
before(async () => {
  dayfly = await startDayfly("--memory", ...TLS);
  endpoint = dayfly.endpoint.replace("http", "https");
});
beforeEach(() => dayfly.reset());
after(() => dayfly.stop());

/** Makes the container of sessions, as the page of the program asks for. */
async function makeContainer(defaultTtl) {
  const client = new CosmosClient({ endpoint, key: dayfly.key });
  const { database } = await client.databases.create({ id: "web" });
  const { container } = await database.containers.create({
    id: "sessions",
    partitionKey: { paths: ["/id"] },
    defaultTtl,
  });
  return container;
}

/** Runs `body` with a browser for an application that counts the visits of each session. */
async function withBrowser(options, body) {
  const place = { endpoint, key: dayfly.key, database: "web", collection: "sessions" };
  const store = new stores.default({ ...place, ...options });
  const app = express();
  app.use(session({ store, secret: "secret", resave: false, saveUninitialized: false }));
  app.get("/", (request, response) => {
    request.session.visits = (request.session.visits ?? 0) + 1;
    response.send(String(request.session.visits));
  });
  app.get("/look", (request, response) => response.send(String(request.session.visits ?? "nothing")));
  app.get("/leave", (request, response) => request.session.destroy(() => response.send("left")));

  const server = app.listen(0);
  await once(server, "listening");
  let cookie;
  const visit = async (page = "") => {
    const headers = cookie ? { cookie } : {};
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/${page}`, { headers });
    cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? cookie;
    return answer.text();
  };
  try {
    await body(visit);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

test("a session is kept, and ended", async () => {
  await makeContainer(-1);
  await withBrowser({ ttl: HOUR }, async (visit) => {
    assert.equal(await visit(), "1");
    assert.equal(await visit(), "2");
    assert.equal(await visit("leave"), "left");
    assert.equal(await visit("look"), "nothing");
    assert.equal(await visit(), "1");
  });
});

test("browsers have sessions of their own", async () => {
  const container = await makeContainer(-1);
  for (const _ of [1, 2, 3]) {
    await withBrowser({ ttl: HOUR }, async (visit) => assert.equal(await visit(), "1"));
  }
  assert.equal((await container.items.readAll().fetchAll()).resources.length, 3);
});

test("a session expires an hour after the last visit", async () => {
  await makeContainer(-1);
  await withBrowser({ ttl: HOUR }, async (visit) => {
    assert.equal(await visit(), "1");
    await dayfly.advance(HOUR - 1);
    // Looking changes nothing in the session, and touches it.
    assert.equal(await visit("look"), "1");
    await dayfly.advance(HOUR - 1);
    assert.equal(await visit(), "2");
    await dayfly.advance(HOUR);
    assert.equal(await visit("look"), "nothing");
    assert.equal(await visit(), "1");
  });
});

test("a session expires by the container's default", async () => {
  await makeContainer(20 * MINUTES);
  await withBrowser({}, async (visit) => {
    assert.equal(await visit(), "1");
    await dayfly.advance(20 * MINUTES - 1);
    assert.equal(await visit(), "2");
    await dayfly.advance(20 * MINUTES);
    assert.equal(await visit(), "1");
  });
});

test("without time to live a session is for ever", async () => {
  await makeContainer(undefined);
  await withBrowser({ ttl: HOUR }, async (visit) => {
    assert.equal(await visit(), "1");
    await dayfly.advance("520w");
    assert.equal(await visit(), "2");
  });
});
