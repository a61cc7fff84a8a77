/** Who may come in, what leaves the page, and what it does when the server is not there. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { admin, at, editor, go, makeContainer, open, origin, until, world, write } from "./harness.js";

const OWN = Buffer.from("a key of their own, as long as keys are, and known to nobody 64!").toString("base64");
const READ = Buffer.from("a key that only reads, as long as keys are; known to nobody 64!!").toString("base64");

const PUBLIC = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const here = world("--memory", "--key", OWN, "--read-only-key", READ);
const REFUSED = [/status of 401/];

async function logIn(page, key) {
  await page.getByLabel("Account key").fill(key);
  await page.getByRole("button", { name: "Log in" }).click();
}

test("a key that is not the public one is asked for", async (t) => {
  const page = await open(t, here, "#/", { expects: REFUSED });
  await logIn(page, "d3Jvbmc=");
  await page.getByText("The server does not know this key.").waitFor();
  await logIn(page, OWN);
  await page.getByRole("heading", { name: "Connect" }).waitFor();
  // It is in this tab, and in no cookie.
  assert.deepEqual(await page.context().cookies(), []);
  const kept = await page.evaluate(() => JSON.stringify({ ...sessionStorage }) + JSON.stringify({ ...localStorage }));
  assert.equal(kept.includes(OWN), false);
  assert.equal((await page.content()).includes(OWN), false);
  await page.reload();
  await page.getByRole("heading", { name: "Connect" }).waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Account key").waitFor();
});

test("nobody comes by the login without a key: Escape, however often, closes nothing", async (t) => {
  const page = await open(t, here, "#/", { expects: REFUSED });
  const key = page.getByLabel("Account key");
  await key.waitFor();
  const isModal = () => page.locator("dialog").evaluate((dialog) => dialog.matches(":modal"));
  for (let n = 0; n < 4; n++) {
    await page.keyboard.press("Escape");
    assert.equal(await isModal(), true);
  }
  // Where nothing has the focus, the browser may close it; then it is open again at once.
  await page.evaluate(() => document.activeElement.blur());
  for (let n = 0; n < 4; n++) await page.keyboard.press("Escape");
  await page.locator("dialog").evaluate((dialog) => dialog.close());
  await until(isModal);
  // And what is typed goes in.
  await page.keyboard.type("a key");
  assert.equal(await key.inputValue(), "a key");
});

test("at the login nothing is asked again and again", async (t) => {
  const page = await open(t, here, "#/", { expects: REFUSED, init: beats });
  await logIn(page, OWN);
  await page.getByRole("heading", { name: "Connect" }).waitFor();
  await endSession(page);
  await page.getByRole("heading", { name: "The session has ended" }).waitFor();
  // Two minutes of beats, as fast as they come: what was asked before the end may still end.
  await page.evaluate(() => window.hurry(5));
  const before = page.requests.length;
  await page.evaluate(() => window.hurry(120));
  assert.deepEqual(page.requests.slice(before).map((request) => request.url()), []);
  await logIn(page, OWN);
  await page.getByRole("heading", { name: "The session has ended" }).waitFor({ state: "detached" });
  await until(() => page.requests.length > before + 2);
  // What waited was one of each.
  const databases = page.requests.slice(before).filter((request) => request.url().endsWith("/dbs"));
  assert.ok(databases.length <= 2, `${databases.length} requests for databases`);
});

/** A page whose timers a test can hurry: so many, without waiting. */
function beats() {
  const { setTimeout: wait } = window;
  const waiting = new Set();
  window.setTimeout = (act, ...rest) => {
    const once = () => waiting.delete(once) && act();
    waiting.add(once);
    return wait(once, ...rest);
  };
  window.hurry = async (times) => {
    for (let n = 0; n < times; n++) {
      for (const act of [...waiting]) act();
      await new Promise((resolve) => wait(resolve, 0));
    }
  };
}

/** The session of a page ends, behind its back. */
async function endSession(page) {
  await endSessionOf(here.server, page);
}

async function endSessionOf(server, page) {
  const token = await page.evaluate(() => sessionStorage.getItem("dayfly.session"));
  await fetch(`${origin(server)}/_admin/v1/session`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${token}` },
  });
}

test("a code in the address opens one session, and is taken out of it", async (t) => {
  const answer = await fetch(`${origin(here.server)}/_admin/v1/session/code`, {
    method: "POST",
    headers: { authorization: `Bearer ${OWN}` },
  });
  const { code } = await answer.json();
  const page = await open(t, here, `#code=${code}`);
  await page.getByRole("heading", { name: "Connect" }).waitFor();
  assert.equal(page.url().includes(code), false);
  const second = await open(t, here, `#code=${code}`, { expects: REFUSED });
  await second.getByLabel("Account key").waitFor();
});

test("with the read-only key nothing that writes is there, and no writing request leaves", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 100 });
  await container.items.create({ id: "a", pk: "x" });
  const page = await open(t, here, "#/", { expects: REFUSED });
  await logIn(page, READ);
  await page.getByText("read only", { exact: true }).waitFor();
  await page.getByRole("heading", { name: "Connect" }).waitFor();
  await page.locator(".tree .leaf").first().waitFor();
  const writes = /new |load a sample|delete|save|touch|set ttl|keep for ever|create|pause|run now|take back|freeze|\+1|enforce/i;
  for (const tab of ["items", "ttl", "query", "throughput", "feed"]) {
    await go(page, at(container, tab));
    await page.getByRole("link", { name: { items: "Items", ttl: "Time to live", query: "Query", throughput: "Throughput", feed: "Change feed" }[tab], exact: true }).waitFor();
    await page.locator(".list table, .ttl, .query, .throughput, .empty, .feed").first().waitFor();
    const names = await page.getByRole("button").evaluateAll((all) => all.map((of) => of.ariaLabel ?? of.textContent));
    assert.deepEqual(names.filter((name) => writes.test(name)), [], tab);
    assert.equal(await page.locator("input[type=checkbox]").count(), 0);
  }
  for (const [hash, ready] of [["#/", ".connect"], ["#/d/shop", "main tbody tr"], ["#/requests", "table.log"]]) {
    await go(page, hash);
    await page.locator(ready).first().waitFor();
    const buttons = await page.getByRole("button").evaluateAll((all) => all.map((of) => of.ariaLabel ?? of.textContent));
    assert.deepEqual(buttons.filter((name) => writes.test(name)), [], hash);
  }
  // What another default would do may be asked, as nothing is written by it.
  await go(page, at(container, "ttl"));
  await page.getByRole("radio", { name: /^Off/ }).check();
  await page.getByText(/^With this default, of 1 live item/).waitFor();
  await page.locator('tr[data-when="never"] td').first().getByText("1", { exact: true }).waitFor();
  await go(page, at(container, "items", { id: "a", pk: '["x"]' }));
  await editor(page, "Text of the item a").click();
  await page.keyboard.press("Control+s");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Find" }).fill("new");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  const changing = page.requests.filter((request) => {
    const reads = /\/session$|query\/explain$/.test(request.url()) || request.headers()["x-ms-documentdb-isquery"];
    return request.method() !== "GET" && !reads;
  });
  assert.deepEqual(changing.map((request) => `${request.method()} ${request.url()}`), []);
});

test("a session that ends in mid-work: the key is asked for, and the text goes on", async (t) => {
  const container = await makeContainer(here);
  await container.items.create({ id: "a", pk: "x", n: 1 });
  const page = await open(t, here, "#/", { expects: REFUSED });
  await logIn(page, OWN);
  await page.getByRole("heading", { name: "Connect" }).waitFor();
  await go(page, at(container, "items", { id: "a", pk: '["x"]' }));
  await editor(page, "Text of the item a").waitFor();
  await write(page, "Text of the item a", '{"id":"a","pk":"x","n":2}');
  await endSession(page);
  await page.getByRole("heading", { name: "The session has ended" }).waitFor();
  await logIn(page, OWN);
  await page.getByRole("heading", { name: "The session has ended" }).waitFor({ state: "detached" });
  await editor(page, "Text of the item a").getByText('"n":2').waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  assert.equal((await container.item("a", "x").read()).resource.n, 2);
});

/** A server at a port that it can have again. */
async function serve(t, port) {
  const flags = ["--memory", "--test-clock", "--listen", `127.0.0.1:${port}`];
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, DAYFLY_LOG: "error" };
  const process_ = spawn(process.env.DAYFLY_BIN, flags, { stdio: ["ignore", "pipe", "inherit"], env });
  t.after(() => process_.kill("SIGKILL"));
  let endpoint;
  for await (const line of createInterface({ input: process_.stdout })) {
    endpoint ??= /AccountEndpoint=(http:[^;]+);/.exec(line)?.[1];
    if (line === "Started") break;
  }
  process_.stdout.resume();
  const stop = async () => {
    const ended = once(process_, "exit");
    process_.kill("SIGKILL");
    await ended;
  };
  return { endpoint, stop };
}

test("the server is gone and comes back: a banner, and it goes on by itself", async (t) => {
  const server = await serve(t, 0);
  const own = { browser: here.browser, server };
  const page = await open(t, own, "#/", { expects: [/ERR_|status of 401|Failed to fetch/] });
  await page.getByRole("heading", { name: "Connect" }).waitFor();
  await page.getByText("Load a sample").click();
  await page.getByRole("table").waitFor();
  // What was loaded is what was promised: a thousand items, some of each kind of life.
  const authorization = `Bearer ${await page.evaluate(() => sessionStorage.getItem("dayfly.session"))}`;
  const figures = `${origin(server)}/_admin/v1/containers/sample/sessions`;
  const told = async (call) => (await fetch(`${figures}${call}`, { headers: { authorization } })).json();
  const ttl = await told("/ttl");
  assert.equal(ttl.defaultTtl, 3600);
  assert.equal(ttl.live.items, 1000);
  assert.ok(ttl.never.items > 0 && ttl.uninterpretable > 0);
  const classes = new Set((await told("/items?limit=1000")).items.map((item) => item.class));
  assert.deepEqual([...classes].sort(), ["explicit", "inherit", "never", "uninterpretable"]);
  await go(page, "#/");
  await server.stop();
  await page.getByText(/The server does not answer/).waitFor();
  await serve(t, new URL(server.endpoint).port);
  await page.getByText(/The server does not answer/).waitFor({ state: "detached" });
  // In memory: it came back empty, and knows no token of before.
  await page.getByText("Load a sample").waitFor();
});

test("who logs out of a server with the public key is out, until somebody logs in", async (t) => {
  const server = await serve(t, 0);
  const page = await open(t, { browser: here.browser, server }, "#/", { expects: [/status of (401|503)/], init: beats });
  const connect = page.getByRole("heading", { name: "Connect" });
  await connect.waitFor();
  const token = await page.evaluate(() => sessionStorage.getItem("dayfly.session"));
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Account key").waitFor();
  await page.getByText(/^You are logged out/).waitFor();
  const before = page.requests.length;
  await page.evaluate(() => window.hurry(120));
  assert.deepEqual(page.requests.slice(before).map((request) => request.url()), []);
  assert.equal(await page.getByLabel("Account key").isVisible(), true);
  assert.equal(await page.evaluate(() => sessionStorage.getItem("dayfly.session")), null);
  const answer = await fetch(`${origin(server)}/_admin/v1/server`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 401);
  await logIn(page, PUBLIC);
  await connect.waitFor();
  // Also when the session had ended already, and when the server cannot be told.
  await endSessionOf(server, page);
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Account key").waitFor();
  await logIn(page, PUBLIC);
  await connect.waitFor();
  await page.route("**/_admin/v1/session", (route) => route.fulfill({ status: 503, body: "later" }));
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByText(/^The server could not be told/).waitFor();
  await page.getByLabel("Account key").waitFor();
});

test("429, 449 and 503: it waits, and says so", async (t) => {
  const container = await makeContainer(here);
  const page = await open(t, here, "#/", { expects: [/status of (401|429|449|503)/] });
  await logIn(page, OWN);
  await page.getByRole("heading", { name: "Connect" }).waitFor();
  for (const status of [429, 449, 503]) {
    let left = 1;
    await page.route("**/items?*", (route) => {
      if (left-- > 0) return route.fulfill({ status, body: '{"code":"x","message":"later"}', headers: { "x-ms-retry-after-ms": "900" } });
      return route.continue();
    });
    await go(page, at(container, "items", { within: status }));
    await page.getByText(new RegExp(`\\(${status}\\); trying again in 1 s`)).waitFor();
    await page.getByText("No item").first().waitFor();
    await page.unroute("**/items?*");
  }
  // A change waits, too, but for one of which nobody knows whether it was made.
  await container.items.create({ id: "a", pk: "x" });
  await go(page, at(container, "items", { id: "a", pk: '["x"]' }));
  await editor(page, "Text of the item a").waitFor();
  for (const status of [429, 449, 503]) {
    let left = 1;
    await page.route("**/docs/a", (route) => {
      if (route.request().method() !== "PUT" || left-- <= 0) return route.continue();
      return route.fulfill({ status, body: '{"code":"x","message":"later"}', headers: { "x-ms-retry-after-ms": "900" } });
    });
    await write(page, "Text of the item a", `{"id":"a","pk":"x","n":${status}}`);
    await page.getByRole("button", { name: "Save" }).click();
    if (status === 503) {
      await page.getByRole("alert").getByText("later (503)").waitFor();
      await editor(page, "Text of the item a").getByText('"n":503').waitFor();
      await page.getByRole("button", { name: "Save" }).click();
    } else {
      await page.getByText(new RegExp(`\\(${status}\\); trying again in 1 s`)).waitFor();
    }
    await until(async () => (await container.item("a", "x").read()).resource.n === status);
    await page.unroute("**/docs/a");
  }
});

test("another port of localhost gets no token, and its POST is refused", async (t) => {
  const stranger = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html");
    answer.end("<!doctype html><title>stranger</title>");
  });
  await new Promise((resolve) => stranger.listen(0, "127.0.0.1", resolve));
  t.after(() => stranger.close());
  const context = await here.browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto(`http://localhost:${stranger.address().port}/`);
  const ours = origin(here.server);
  const told = await page.evaluate(
    async ([ours, key]) => {
      const body = JSON.stringify({ key });
      const read = await fetch(`${ours}/_admin/v1/session`, { method: "POST", body }).then(
        (answer) => answer.text(),
        () => "refused",
      );
      const simple = { method: "POST", mode: "no-cors", body };
      const opaque = await fetch(`${ours}/_admin/v1/session`, simple).then(({ type }) => type, () => "refused");
      const page = await fetch(`${ours}/_explorer/`).then((answer) => answer.text(), () => "refused");
      return { read, opaque, page };
    },
    [ours, OWN],
  );
  assert.equal(told.read, "refused");
  // It goes out, as a browser lets it; what comes back is closed to it.
  assert.equal(told.opaque, "opaque");
  assert.equal(told.page, "refused");
  const answer = await fetch(`${ours}/_admin/v1/session`, {
    method: "POST",
    headers: { origin: `http://localhost:${stranger.address().port}` },
    body: JSON.stringify({ key: OWN }),
  });
  assert.equal(answer.status, 403);
});

test("without brotli it is the same page", async (t) => {
  const page = await open(t, here, "#/", { expects: REFUSED, extraHTTPHeaders: { "accept-encoding": "identity" } });
  const answers = [];
  page.on("response", (response) => answers.push(response));
  await page.reload();
  await page.getByLabel("Account key").waitFor();
  const files = answers.filter((response) => response.url().includes("/_explorer/"));
  assert.ok(files.length >= 3);
  for (const response of files) {
    assert.equal(response.status(), 200, response.url());
    if (!process.env.PORTAL_BUILD) assert.equal((await response.allHeaders())["content-encoding"], undefined, response.url());
  }
  const server = await admin(here.server, "server");
  assert.equal(server.wellKnownKey, false);
});
