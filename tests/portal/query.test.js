/** Queries, the request log, the change feed and throughput, as the page shows them. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { admin, at, clipboard, editor, go, makeContainer, nodes, open, until, world, write } from "./harness.js";

const here = world();

async function filled(count = 250) {
  const container = await makeContainer(here, { defaultTtl: 1000 });
  for (let first = 0; first < count; first += 100) {
    const operations = Array.from({ length: Math.min(100, count - first) }, (_, n) => ({
      operationType: "Create",
      resourceBody: { id: `i${first + n}`, pk: "x", n: first + n, even: (first + n) % 2 === 0, tag: `t${n % 5}` },
    }));
    await container.items.batch(operations, "x");
  }
  return container;
}

async function run(page, query) {
  await write(page, "Query", query);
  await page.getByRole("button", { name: "Run", exact: true }).click();
}

const cells = (page) => page.locator(".results tbody td").allInnerTexts();
const told = (page) => page.locator(".results [role=status]");

test("rows page by page, with charge and metrics as the answer tells them", async (t) => {
  const container = await filled();
  const page = await open(t, here, at(container, "query"));
  await editor(page, "Query").waitFor();
  const answered = page.waitForResponse((response) => response.url().endsWith("/docs"));
  await run(page, "SELECT VALUE c.n FROM c WHERE c.n >= 20 ORDER BY c.n");
  const answer = await answered;
  const charge = Number(answer.headers()["x-ms-request-charge"]);
  await told(page).getByText("100 rows so far").waitFor();
  assert.ok((await told(page).innerText()).includes(`${charge >= 10 ? charge.toFixed(1) : charge} RU`.replace(".0 RU", " RU")));
  assert.equal((await cells(page))[0], "20");
  await page.getByRole("button", { name: "Next" }).click();
  await until(async () => (await cells(page))[0] === "120");
  await page.getByRole("button", { name: "Next" }).click();
  await until(async () => (await cells(page)).at(-1) === "249");
  await told(page).getByText("230 rows ·").waitFor();
  assert.equal(await page.getByRole("button", { name: "Next" }).isDisabled(), true);
  await page.getByRole("button", { name: "Figures" }).click();
  const metrics = Object.fromEntries(
    answer.headers()["x-ms-documentdb-query-metrics"].split(";").map((pair) => pair.split("=")),
  );
  const row = page.locator("tr", { hasText: "outputDocumentCount" });
  assert.equal(metrics.outputDocumentCount, "100");
  await row.getByText("30", { exact: true }).waitFor();
  await page.getByText("/n/?").waitFor();
});

test("the plan is drawn from what explain tells", async (t) => {
  const container = await filled(100);
  await container.items.create({ id: "dead", pk: "x", n: 5000, ttl: 5 });
  const page = await open(t, here, at(container, "query"));
  const names = { container: `shop/${container.id}` };
  await fetch(`${here.server.endpoint}_admin/v1/purge/pause`, {
    method: "POST",
    headers: { authorization: `Bearer ${here.server.key}` },
    body: JSON.stringify(names),
  });
  await here.server.advance(6);
  await run(page, "SELECT c.id FROM c WHERE c.n > 89 ORDER BY c.tag");
  await page.getByRole("button", { name: "Plan" }).click();
  const steps = page.locator(".steps li");
  await steps.filter({ hasText: "Load" }).getByText("10 items").waitFor();
  await steps.filter({ hasText: "Walk" }).getByText("1 of them dead, not purged").waitFor();
  await steps.filter({ hasText: "Sort" }).getByText("10 sorted rows").waitFor();
  await steps.filter({ hasText: "Answer" }).getByText("10 rows").waitFor();
});

test("a plan is asked for by those who look at it, once", async (t) => {
  const container = await filled(10);
  const page = await open(t, here, at(container, "query"));
  const asked = () => page.requests.filter((request) => request.url().endsWith("query/explain")).length;
  await run(page, "SELECT VALUE COUNT(1) FROM c");
  await until(async () => (await cells(page)).join() === "10");
  assert.equal(asked(), 0);
  const steps = page.locator(".steps li").first();
  for (const view of ["Plan", "Table", "Plan"]) {
    await page.getByRole("button", { name: view, exact: true }).click();
    await (view === "Plan" ? steps : page.locator(".results tbody")).waitFor();
  }
  assert.equal(asked(), 1);
  // A query that is stopped keeps the answer of before, and the plan of it.
  await page.route("**/docs", (route) => (route.request().method() === "POST" ? undefined : route.continue()));
  await run(page, "SELECT VALUE 1");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("asking…").waitFor({ state: "detached" });
  await steps.waitFor();
  assert.equal(await page.getByText(/being asked for/).count(), 0);
});

test("a query that was not run, and its parameters, wait where they were written", async (t) => {
  const container = await filled(1);
  const page = await open(t, here, at(container, "query"));
  await write(page, "Query", "SELECT @mine AS mine");
  await page.getByRole("button", { name: "Add a parameter" }).click();
  await page.getByLabel("Name of parameter 1").fill("@mine");
  await page.getByLabel("Value of parameter 1, as JSON").fill("9007199254740993");
  const away = async () => {
    await page.getByRole("link", { name: "Items" }).click();
    await page.locator(".list table").waitFor();
    await page.getByRole("link", { name: "Query" }).click();
    await editor(page, "Query").getByText("@mine").first().waitFor();
    assert.equal(await page.getByLabel("Value of parameter 1, as JSON").inputValue(), "9007199254740993");
  };
  await away();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await until(async () => (await cells(page)).join() === "9007199254740993");
  await away();
});

test("errors are underlined at their place", async (t) => {
  const container = await filled(1);
  const page = await open(t, here, at(container, "query"), { expects: [/status of 400/] });
  await run(page, "SELECT d.x FROM c");
  await page.getByRole("alert").getByText("Identifier 'd' could not be resolved. (SC2001)").waitFor();
  const marked = page.locator(".cm-lintRange-error");
  await marked.waitFor();
  assert.equal(await marked.innerText(), "d");
  await run(page, "SELECT c.n FROM c WHERE");
  await page.getByRole("alert").getByText(/SC1002/).waitFor();
  await run(page, "SELECT VALUE 1");
  await until(async () => (await cells(page)).join() === "1");
  assert.equal(await marked.count(), 0);
});

test("parameters, numbers as they are, rows as a table and as text", async (t) => {
  const container = await makeContainer(here);
  const page = await open(t, here, at(container, "query"));
  await page.getByRole("button", { name: "Add a parameter" }).click();
  await page.getByLabel("Name of parameter 1").fill("@n");
  await page.getByLabel("Value of parameter 1, as JSON").fill("9007199254740993");
  await run(page, 'SELECT @n AS n, "<b>" AS s');
  await until(async () => (await cells(page)).join() === "9007199254740993,<b>");
  await page.getByRole("button", { name: "Text", exact: true }).click();
  await editor(page, "Rows").getByText('"n": 9007199254740993').waitFor();
});

test("rows are saved as JSON lines and as CSV, all of them", async (t) => {
  const container = await filled(130);
  const page = await open(t, here, at(container, "query"));
  await run(page, 'SELECT c.n, {"a": [1, 2.50]} AS o, "x,\\"y" AS s FROM c ORDER BY c.n');
  await told(page).getByText("100 rows so far").waitFor();
  const saved = async (kind) => {
    const download = page.waitForEvent("download");
    await page.getByLabel("Save the rows as").selectOption(kind);
    return readFile(await (await download).path(), "utf8");
  };
  const lines = (await saved("JSON lines")).trimEnd().split("\n");
  assert.equal(lines.length, 130);
  assert.deepEqual(JSON.parse(lines[129]), { n: 129, o: { a: [1, 2.5] }, s: 'x,"y' });
  const table = (await saved("CSV")).trimEnd().split("\r\n");
  assert.equal(table.length, 131);
  assert.equal(table[0], "n,o,s");
  assert.match(table[1], /^0,"\{""a"":\[1,2\.50?\]\}","x,""y"$/);
});

test("queries are kept, and copied for other clients", async (t) => {
  const container = await filled(3);
  const page = await open(t, here, at(container, "query"), { init: clipboard });
  await run(page, "SELECT VALUE COUNT(1) FROM c");
  await until(async () => (await cells(page)).join() === "3");
  await page.getByRole("button", { name: "Kept queries" }).click();
  await page.getByLabel("Keep the query of the editor as").fill("how many");
  await page.getByRole("button", { name: "Keep", exact: true }).click();
  await page.getByRole("button", { name: "Close" }).click();
  await write(page, "Query", "SELECT 1");
  await page.reload();
  await page.getByRole("button", { name: "Kept queries" }).click();
  await page.getByRole("button", { name: /how many/ }).first().click();
  await editor(page, "Query").getByText("COUNT").waitFor();
  for (const [name, part] of [["curl", "-d '{\"query\""], ["Python", "container.query_items("], ["JavaScript", ".query({ query:"]]) {
    await page.getByLabel("Copy as").selectOption(name);
    await until(async () => ((await page.evaluate(() => window.clipboardText)) ?? "").includes(part), name);
  }
});

test("after a dot come the names of items, else keywords and functions", async (t) => {
  const container = await filled(3);
  const page = await open(t, here, at(container, "query"));
  await editor(page, "Query").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("SELECT c.ta");
  await page.getByRole("option", { name: "tag", exact: true }).click();
  await page.keyboard.type(" FROM c WHERE ARRAY_CONT");
  await page.getByRole("option", { name: "ARRAY_CONTAINS_ANY" }).waitFor();
});

test("ten thousand rows stay a small document", async (t) => {
  const container = await filled(10_000);
  const page = await open(t, here, at(container, "query"));
  await run(page, "SELECT * FROM c");
  await told(page).getByText("100 rows so far").waitFor();
  assert.ok((await nodes(page)) <= 2000);
  const next = page.getByRole("button", { name: "Next" });
  for (let rows = 100; rows < 10_000; ) {
    if (await next.isDisabled()) continue;
    await next.click();
    const shown = Number((await told(page).innerText()).replaceAll(",", "").match(/^\d+/)[0]);
    if (shown > rows && shown % 2000 === 0) assert.ok((await nodes(page)) <= 2000, `${shown} rows`);
    rows = shown;
  }
  await told(page).getByText("10,000 rows").waitFor();
  assert.ok((await nodes(page)) <= 2000);
  await page.getByRole("button", { name: "Text", exact: true }).click();
  await editor(page, "Rows").waitFor();
  assert.ok((await nodes(page)) <= 2000);
});

test("the last requests: filtered, found by activity id, with the query's text", async (t) => {
  const container = await filled(2);
  const { activityId } = await container.items
    .query({ query: "SELECT VALUE c.n FROM c WHERE c.n = @n", parameters: [{ name: "@n", value: 1 }] })
    .fetchNext();
  await container.item("nobody", "x").read();
  const page = await open(t, here, "#/requests");
  const rows = page.locator("table.log tbody tr");
  await rows.first().waitFor();
  await page.getByLabel("Status").selectOption("404");
  await until(async () => (await page.locator("table.log .badge").allInnerTexts()).every((text) => text.startsWith("404")));
  await page.getByRole("button", { name: /docs\/nobody$/ }).first().waitFor();
  await page.getByLabel("Status").selectOption("any status");
  await page.getByLabel("Part of the path, or an activity id").fill(activityId);
  await until(async () => (await rows.count()) === 1);
  await rows.getByRole("button").first().click();
  await page.getByText("SELECT VALUE c.n FROM c WHERE c.n = @n").waitFor();
  assert.ok((await nodes(page)) <= 2000);
});

test("what the page asks again and again does not stand among the requests", async (t) => {
  const container = await filled(2);
  const log = async () => (await admin(here.server, `requests?limit=1000`)).requests;
  const page = await open(t, here, at(container, "ttl"));
  await page.getByText("What expires when").waitFor();
  const asks = (part) => page.requests.filter((request) => request.url().includes(part)).length;
  await until(() => asks("/ttl/whatif") >= 2 && asks("/ttl/forecast") >= 1);
  await go(page, at(container, "throughput"));
  await until(() => asks("/throughput?") >= 2);
  await go(page, at(container, "feed"));
  await page.getByText("Waiting for a write…").waitFor();
  const tails = () => page.requests.filter((request) => request.headers()["a-im"]).length;
  await until(() => tails() >= 3);
  await until(() => asks(`/containers/shop/${container.id}`) >= 3);
  const paths = (await log()).map(({ verb, path }) => `${verb} ${path}`);
  const names = ["/ttl", "/ttl/whatif", "/ttl/forecast", "/throughput", ""].map((name) => `GET /_admin/v1/containers/shop/${container.id}${name}`);
  names.push(`GET /dbs/shop/colls/${container.id}/docs`, "GET /_admin/v1/clock", "GET /dbs");
  // The test itself moves the clock by a key, and is told.
  const told = paths.filter((path) => names.includes(path) && path !== "GET /_admin/v1/clock");
  assert.deepEqual(told, []);
});

test("requests with one activity id are rows of their own", async (t) => {
  const container = await makeContainer(here);
  const id = "6f1c9a34-0000-4000-8000-00000000abcd";
  for (const path of ["one", "two"]) {
    await fetch(`${here.server.endpoint}dbs/${path}`, { headers: { "x-ms-activity-id": id } });
  }
  const page = await open(t, here, "#/requests");
  await page.getByLabel("Part of the path, or an activity id").fill(id);
  const rows = page.locator("table.log tbody tr");
  await until(async () => (await rows.count()) === 2);
  await page.getByRole("button", { name: "/dbs/one" }).click();
  await until(async () => (await page.locator("table.log tr.more").count()) === 1);
  assert.equal(await page.getByRole("button", { name: "/dbs/two" }).getAttribute("aria-expanded"), "false");
  // Newer ones come above, and it stays open.
  await container.item("nobody", "x").read();
  await page.getByLabel("Part of the path, or an activity id").fill("");
  await page.getByRole("button", { name: /docs\/nobody$/ }).first().waitFor();
  assert.equal(await page.getByRole("button", { name: "/dbs/one" }).getAttribute("aria-expanded"), "true");
});

test("requests of one verb, and of a 501 what is missing", async (t) => {
  const container = await filled(2);
  await container.items.upsert({ id: "i0", pk: "x", n: 7 });
  const missing = `${here.server.endpoint}dbs/shop/colls/${container.id}/docs/i0/attachments`;
  const session = await fetch(`${here.server.endpoint}_admin/v1/session`, {
    method: "POST",
    headers: { authorization: `Bearer ${here.server.key}` },
  }).then((answer) => answer.json());
  const answer = await fetch(missing, { headers: { authorization: `Bearer ${session.token}` } });
  assert.equal(answer.status, 501);
  const page = await open(t, here, "#/requests");
  const verbs = async () => new Set(await page.locator("table.log tbody tr > td:nth-child(2)").allInnerTexts());
  for (const verb of ["POST", "GET"]) {
    await page.getByLabel("Verb").selectOption(verb);
    await until(async () => [...(await verbs())].join() === verb);
  }
  await page.getByLabel("Status").selectOption("501");
  await until(async () => (await page.locator("table.log .badge").allInnerTexts()).every((text) => text === "501"));
  await page.getByText("refused: An attachment").first().waitFor();
  await page.getByRole("button", { name: /attachments$/ }).first().click();
  await page.getByText("Not supported yet: An attachment").waitFor();
});

test("the change feed shows what is written as it is written", async (t) => {
  const container = await makeContainer(here);
  const page = await open(t, here, at(container, "feed"));
  await page.getByText("Waiting for a write…").waitFor();
  await until(() => page.requests.some((request) => request.headers()["a-im"]));
  await container.items.create({ id: "a", pk: "x", n: 1 });
  const row = page.locator('tr[data-id="a"]');
  await row.first().waitFor();
  await container.items.upsert({ id: "a", pk: "x", n: 2 });
  await until(async () => (await row.count()) === 2);
  await row.first().getByRole("button").click();
  await page.getByText('"n": 2').waitFor();
  await page.getByRole("button", { name: "From the beginning" }).click();
  await until(async () => (await row.count()) === 1);
});

test("every version and end: what was deleted, and what has expired, once", async (t) => {
  const container = await makeContainer(here, { defaultTtl: -1 });
  const page = await open(t, here, at(container, "feed"));
  await page.getByRole("button", { name: "Every version and end" }).click();
  await until(() => page.requests.some((request) => request.headers()["a-im"] === "Full-Fidelity Feed"));
  await page.getByText("Waiting for a write…").waitFor();
  await until(async () => {
    const answered = page.requests.filter((request) => request.headers()["a-im"] === "Full-Fidelity Feed");
    return (await answered[0].response())?.status() === 304;
  });
  await container.items.create({ id: "a", pk: "x", ttl: 30 });
  await container.items.create({ id: "b", pk: "x" });
  await container.item("b", "x").delete();
  await here.server.advance(31);
  const what = (id) => page.locator(`tr[data-id="${id}"] .badge`).allInnerTexts();
  await until(async () => (await what("a")).join() === "expired,create");
  await until(async () => (await what("b")).join() === "delete,create");
  assert.equal(await page.locator("tbody tr").count(), 4);
});
