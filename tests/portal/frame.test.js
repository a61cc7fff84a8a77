/** The frame: making and removing, the clock, finding, and how much it all weighs. */
import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";

import { admin, at, go, makeContainer, nodes, open, origin, until, world } from "./harness.js";

const here = world();

test("a container is made, and removed by those who type its name", async (t) => {
  const page = await open(t, here);
  await page.getByRole("button", { name: "New database", exact: true }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("müller & söhne");
  await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "müller & söhne" }).waitFor();
  await page.getByRole("button", { name: "New container" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("carts %2F");
  await dialog.getByLabel("Partition key").fill("/tenant, /user");
  await dialog.getByRole("radio", { name: /^On/ }).check();
  await dialog.getByRole("textbox", { name: "Time to live" }).fill("7");
  await dialog.getByLabel("Unit").selectOption("days");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "carts %2F" }).waitFor();
  const container = here.client.database("müller & söhne").container("carts %2F");
  const { resource } = await container.read();
  assert.equal(resource.defaultTtl, 7 * 86400);
  assert.deepEqual(resource.partitionKey.paths, ["/tenant", "/user"]);
  await page.locator(".tree").getByText("7 d", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Time to live" }).click();
  await page.locator(".would").waitFor();

  await page.getByRole("button", { name: "Delete the container" }).click();
  const sure = page.getByRole("dialog").getByRole("button", { name: "Delete the container" });
  await page.getByRole("dialog").getByRole("textbox").fill("carts");
  assert.equal(await sure.isDisabled(), true);
  await page.getByRole("dialog").getByRole("textbox").fill("carts %2F");
  await sure.click();
  await page.getByText("It has no containers yet.").waitFor();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("dialog").getByRole("textbox").fill("müller & söhne");
  await page.getByRole("dialog").getByRole("button", { name: "Delete the database" }).click();
  await page.getByText("Load a sample").waitFor();
});

test("the clock is frozen and moved, and every figure follows", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 3600 });
  await container.items.create({ id: "a", pk: "x" });
  const page = await open(t, here, at(container, "ttl"));
  const live = page.locator(".figures > div", { hasText: "Live items" }).locator("dd");
  await live.getByText("1", { exact: true }).waitFor();
  await page.locator(".clock > button").click();
  await page.getByRole("button", { name: "Let it run" }).click();
  await page.getByRole("button", { name: "Freeze" }).click();
  await page.getByRole("button", { name: "Let it run" }).waitFor();
  const before = await here.server.now();
  await page.getByRole("button", { name: "+1 min" }).click();
  await until(async () => (await here.server.now()) === before + 60);
  const shown = new Date((before + 60) * 1000).toISOString().slice(11, 19);
  await page.locator(".clock > button").getByText(shown).waitFor();
  await page.getByRole("button", { name: "+1 h" }).click();
  await live.getByText("0", { exact: true }).waitFor();
  await page.locator('tr[data-when="never"]').waitFor();
  await page.locator(".tree .leaf .num").filter({ hasText: /^0$/ }).first().waitFor();
  await page.keyboard.press("Escape");
});

test("marks in the tree: a purge that is paused, one that lags, an index that is built", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 10 });
  await container.items.create({ id: "a", pk: "x" });
  const purge = (what) =>
    fetch(`${here.server.endpoint}_admin/v1/purge/${what}`, {
      method: "POST",
      headers: { authorization: `Bearer ${here.server.key}` },
      body: JSON.stringify({ container: `shop/${container.id}` }),
    });
  const page = await open(t, here);
  const leaf = page.locator(".tree .leaf").filter({ has: page.getByText(container.id, { exact: true }) });
  const mark = (told) => leaf.getByRole("img", { name: told });
  await leaf.waitFor();
  assert.equal(await leaf.getByRole("img").count(), 0);
  await purge("pause");
  await mark("The purge is paused").waitFor();
  await here.server.advance(10 + 61);
  await mark(/^The purge lags by 1 m 1 s: 1 expired item/).waitFor();
  await purge("resume");
  await leaf.getByRole("img").waitFor({ state: "detached" });
  // An index of a few items is built before anybody can look, so half of it is made up here.
  await page.route("**/containers?*", async (route) => {
    const answer = await route.fetch();
    const told = await answer.json();
    for (const of of told.containers) of.indexProgress = 40;
    return route.fulfill({ response: answer, json: told });
  });
  await mark("An index is being built: 40 %").waitFor();
  await page.unroute("**/containers?*");
});

test("on a narrow screen the clock is all there, and paths of requests can be read", async (t) => {
  const container = await makeContainer(here);
  await container.items.create({ id: "a", pk: "x" });
  const page = await open(t, here, "#/requests", { width: 360, height: 740 });
  const path = page.locator("table.log tbody .path").first();
  await path.waitFor();
  assert.ok((await path.boundingBox()).width >= 180);
  await page.locator(".clock > button").click();
  const { x, width } = await page.locator(".popover").boundingBox();
  assert.ok(x >= 0 && x + width <= 360, `${x} and ${width}`);
  for (const button of await page.locator(".popover button").all()) {
    const box = await button.boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 360);
  }
});

test("Ctrl-K finds containers and what can be done, by keyboard alone", async (t) => {
  const container = await makeContainer(here, { id: "needle-42" });
  const page = await open(t, here);
  await page.locator(".tree").getByText("needle-42").waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("needle");
  await page.getByRole("option", { name: /needle-42/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: container.id }).waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("time to");
  await page.keyboard.press("Enter");
  await page.locator(".would").waitFor();
  await page.goBack();
  await page.getByText("No items are alive here.").waitFor();
});

test("many containers: the tree stays short, and finds them", async (t) => {
  const { database } = await here.client.databases.create({ id: "many" });
  for (let n = 0; n < 80; n++) await database.containers.create({ id: `c-${n}`, partitionKey: "/pk" });
  const { container } = await database.containers.createIfNotExists({ id: "c-0" });
  const fields = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`field${n}`, { n }]));
  const operations = Array.from({ length: 60 }, (_, n) => ({
    operationType: "Create",
    resourceBody: { id: `i${n}`, pk: "x", ...fields, ttl: 5 },
  }));
  await container.items.batch(operations, "x");
  const page = await open(t, here, "#/c/many/c-0/items");
  await page.evaluate(() => {
    const fields = JSON.stringify(["field0", "field1", "field2", "field3", "field4", "field5"]);
    localStorage.setItem("dayfly.columns.many/c-0", fields);
  });
  await page.reload();
  await page.locator("tbody tr").nth(39).waitFor();
  const widest = await nodes(page);
  assert.ok(widest <= 2000, `${widest} nodes`);
  await page.locator("tbody a").first().click();
  await page.locator(".pane .cm-content").waitFor();
  const split = await nodes(page);
  assert.ok(split <= 2000, `${split} nodes`);
  await page.getByText(/more: type to filter/).waitFor();
  assert.ok((await page.locator(".tree li").count()) <= 60);
  await page.getByLabel("Filter the tree").fill("c-77");
  await page.getByRole("link", { name: /c-77/ }).click();
  await page.getByRole("heading", { name: "c-77" }).waitFor();
  await database.delete();
});

test("more containers than one answer has: all are in the tree, and can be opened", async (t) => {
  const { database } = await here.client.databases.create({ id: "thousand" });
  const names = Array.from({ length: 1010 }, (_, n) => `t-${n}`);
  while (names.length > 0) {
    const some = names.splice(0, 20);
    await Promise.all(some.map((id) => database.containers.create({ id, partitionKey: "/pk" })));
  }
  const { containers, continuation } = await admin(here.server, "containers?limit=1000");
  assert.equal(containers.length, 1000);
  assert.notEqual(continuation, null);
  const first = new Set(containers.map((of) => of.container));
  const behind = Array.from({ length: 1010 }, (_, n) => `t-${n}`).find((name) => !first.has(name));
  const page = await open(t, here, `#/c/thousand/${behind}/items`, { expects: [/status of 404/] });
  await page.getByText("No items are alive here.").waitFor();
  assert.equal(await page.getByText(/There is no container of this name/).count(), 0);
  await page.locator("header.head .badge").getByText("Off").waitFor();
  await page.getByLabel("Filter the tree").fill(behind);
  await page.locator(".tree .leaf").getByText(behind, { exact: true }).waitFor();
  assert.equal(await page.getByText(/Only the first/).count(), 0);
  assert.ok((await nodes(page)) <= 2000);
  await page.getByLabel("Filter the tree").fill("");
  await go(page, "#/d/thousand");
  await page.locator("main tbody tr").nth(59).waitFor();
  const listed = await nodes(page);
  assert.ok(listed <= 2000, `${listed} nodes`);

  // One of so many is not asked for with all the others: what others do to it is noted at once.
  const { container: looked } = await database.containers.createIfNotExists({ id: behind, partitionKey: "/pk" });
  await looked.items.create({ id: "a", pk: "x" });
  await go(page, `#/c/thousand/${behind}/items`);
  await page.locator('tr[data-id="a"] .expires').getByText("never").waitFor();
  const { resource } = await looked.read();
  await looked.replace({ ...resource, defaultTtl: 100 });
  await page.locator('tr[data-id="a"] .expires').getByText("1 m 40 s").waitFor();
  await page.locator("header.head .badge").getByText("100 s").waitFor();

  // So is one that was made a moment ago, and its partition key is its own.
  await database.containers.create({ id: "new one", partitionKey: "/tenant" });
  await go(page, "#/c/thousand/new%20one/items");
  await page.getByText("No items are alive here.").waitFor();
  await page.locator("header.head .badge").getByText("Off").waitFor();
  assert.equal(await page.getByText(/There is no container of this name/).count(), 0);
  await page.getByRole("button", { name: "New item" }).click();
  await page.locator(".pane .cm-content").getByText('"tenant"').waitFor();
  await database.container("new one").delete();
  await page.getByText(/There is no container of this name/).waitFor();
  await database.delete();
});

const UPGRADED = [/status of 404/];

test("after an upgrade a part that is gone says that the page must be loaded anew", async (t) => {
  const container = await makeContainer(here);
  const page = await open(t, here, at(container), { expects: UPGRADED });
  await page.getByText("No items are alive here.").waitFor();
  await page.route("**/_explorer/query-*.js", (route) => route.fulfill({ status: 404 }));
  await page.getByRole("link", { name: "Query" }).click();
  await page.getByText(/If the server was upgraded/).waitFor();
  await page.unroute("**/_explorer/query-*.js");
  await page.getByRole("button", { name: "Reload the page" }).click();
  await page.getByRole("textbox", { name: "Query" }).waitFor();
});

test("without the editor an item is a plain text, and is saved as it is", async (t) => {
  const container = await makeContainer(here);
  await container.items.create({ id: "a", pk: "x", n: 1 });
  const page = await open(t, here, at(container), { expects: UPGRADED });
  await page.route("**/_explorer/editor-*.js", (route) => route.fulfill({ status: 404 }));
  await page.locator('tr[data-id="a"] a').click();
  const text = page.locator("textarea");
  await text.waitFor();
  await page.getByRole("button", { name: "Keep for ever" }).click();
  await until(async () => (await text.inputValue()).includes('"ttl": -1'));
  await text.fill('{"id":"a","pk":"x","n":2}');
  await page.getByRole("button", { name: /^Save/ }).click();
  await page.getByText(/^Saved\./).waitFor();
  assert.equal((await container.item("a", "x").read()).resource.n, 2);
});

/** How many bytes an address has on the way, in brotli. */
function weight(url) {
  return new Promise((resolve, reject) => {
    http
      .get(url, { headers: { "accept-encoding": "br" } }, (answer) => {
        let bytes = 0;
        answer.on("data", (chunk) => (bytes += chunk.length));
        answer.on("end", () => resolve({ bytes, headers: answer.headers, status: answer.statusCode }));
      })
      .on("error", reject);
  });
}

test("first paint is 40 kB at most, all is 200 kB, and what has a hash stays", async (t) => {
  if (process.env.PORTAL_BUILD) return;
  const container = await makeContainer(here, { throughput: 400 });
  const page = await open(t, here, "#/d/nothing");
  await page.getByText("There is no database of this name any more.").waitFor();
  let series;
  page.on("response", async (response) => {
    if (response.url().endsWith("/series")) series = await response.json();
  });
  const files = () => {
    const urls = page.requests.map((request) => request.url()).filter((url) => url.includes("/_explorer/"));
    return [...new Set(urls.map((url) => url.replace(/#.*/, "")))];
  };
  const sum = async (urls) => {
    let bytes = 0;
    for (const url of urls) {
      const told = await weight(url);
      assert.equal(told.status, 200, url);
      assert.equal(told.headers["content-encoding"], "br", url);
      const kept = url.endsWith("/") ? "no-cache" : "public, max-age=31536000, immutable";
      assert.equal(told.headers["cache-control"], kept, url);
      bytes += told.bytes;
    }
    return bytes;
  };
  const first = await sum(files());
  assert.ok(first <= 40_000, `${first} bytes`);
  for (const tab of ["items", "query", "ttl", "throughput", "feed"]) {
    await go(page, at(container, tab));
    await page.locator(".list, .query .cm-content, .would, .throughput, .container > .empty, .feed").first().waitFor();
  }
  await go(page, "#/requests");
  await page.locator("table.log").waitFor();
  await go(page, "#/");
  // The charts are loaded, and say what the server counted.
  await page.locator(".charts canvas").nth(2).waitFor();
  const last = (name) => series?.[name].at(-1);
  await until(async () => {
    const labels = await page.locator(".charts [role=img]").evaluateAll((all) => all.map((of) => of.ariaLabel));
    const expected = [`Now: requests ${last("requests")}, errors ${last("errors")}`, `Now: expired ${last("expired")}, purged ${last("purged")}`];
    return labels[0] === expected[0] && labels[2] === expected[1];
  }, "The charts say something else than the server.");
  const all = await sum(files());
  assert.ok(all <= 200_000, `${all} bytes`);
});

test("a foreign host is refused on every route, and a browser at / comes here", async () => {
  const { port } = new URL(origin(here.server));
  const ask = (path, headers) =>
    new Promise((resolve, reject) => {
      http
        .get({ host: "127.0.0.1", port, path, headers }, (answer) => {
          answer.resume();
          answer.on("end", () => resolve(answer));
        })
        .on("error", reject);
    });
  for (const path of ["/", "/_explorer/", "/_explorer/index.html", "/dbs", "/_admin/v1/server", "/_admin/v1/session"]) {
    assert.equal((await ask(path, { host: `evil.example:${port}` })).statusCode, 421, path);
  }
  const browser = await ask("/", { host: `localhost:${port}`, accept: "text/html,application/xhtml+xml,*/*;q=0.8" });
  assert.equal(browser.headers.location, "/_explorer/");
  const page = await ask("/_explorer/index.html", { host: `localhost:${port}` });
  assert.equal(page.statusCode, 200);
  assert.equal((await admin(here.server, "server")).clock.canMove, true);
});
