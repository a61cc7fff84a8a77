/** Hostile texts render inert, and the page can be used by everybody. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { at, go, makeContainer, open, origin, until, world, write } from "./harness.js";

const here = world();

const HOSTILE = [
  "<script>window.hacked=1</script>",
  "<img src=x onerror=window.hacked=1>",
  '"><svg onload=window.hacked=1>',
  "javascript:window.hacked=1",
  "'-window.hacked-'",
  "{{constructor.constructor('window.hacked=1')()}}",
  "</textarea><iframe srcdoc='<script>parent.hacked=1</script>'>",
  "<style>*{display:none}</style>",
  "<math><mtext></table><mglyph><style><img src=x onerror=window.hacked=1>",
  "\u202egnissim eht\u202c\u0000\u2028<b>",
  "__proto__",
  "${window.hacked=1}",
];

const isHacked = (page) => page.evaluate(() => window.hacked !== undefined);

test("ids, names, values, fields and queries of a hostile list render inert", async (t) => {
  const { database } = await here.client.databases.create({ id: "<img src=x onerror=window.hacked=1>" });
  const { container: named } = await database.containers.create({
    id: "<script>window.hacked=1<!script>",
    partitionKey: "/pk",
  });
  await named.items.create({ id: "a", pk: HOSTILE[0] });
  const container = await makeContainer(here, { defaultTtl: 1000 });
  for (const [n, text] of HOSTILE.entries()) {
    const fields = { [text]: text, [`f${n}`]: { [text]: [text] }, ttl: n % 2 ? undefined : 500 };
    await container.items.create({ id: text.replace(/[/\\?#]/g, "|"), pk: text, ...fields });
  }
  const page = await open(t, here, at(container), { expects: [/status of 4/] });
  await page.locator("tbody tr").nth(HOSTILE.length - 1).waitFor();
  for (const [n] of HOSTILE.entries()) {
    const link = page.locator("tbody td.id a").nth(n);
    const id = await link.innerText();
    await link.click();
    await page.locator(".pane .cm-content").waitFor();
    await until(async () => (await page.locator(".pane h2").innerText()) === id);
    await page.getByRole("button", { name: /^Save/ }).click();
    await page.getByText(/^Saved\./).waitFor();
    await page.getByRole("button", { name: "Close the item" }).click();
    await page.locator(".pane").waitFor({ state: "detached" });
  }
  await go(page, at(container, "query"));
  await write(page, "Query", "SELECT * FROM c");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator(".results tbody tr").first().waitFor();
  for (const text of HOSTILE) {
    await write(page, "Query", `SELECT ${JSON.stringify(text)} AS s, ${text}`);
    const answered = page.waitForResponse((response) => response.url().endsWith("/docs"));
    await page.getByRole("button", { name: "Run", exact: true }).click();
    const refused = (await answered).status() >= 400;
    await (refused ? page.getByRole("alert") : page.locator(".results tbody tr")).first().waitFor();
  }
  await page.getByRole("button", { name: "Kept queries" }).click();
  await page.getByRole("button", { name: "Close" }).click();
  for (const hash of ["#/requests", at(container, "feed"), "#/", `#/d/${encodeURIComponent(database.id)}`]) {
    await go(page, hash);
    await page.locator("h1").first().waitFor();
  }
  await go(page, `#/c/${encodeURIComponent(database.id)}/${encodeURIComponent(named.id)}/ttl`);
  await page.getByText("What expires when").waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Find" }).fill("script");
  await page.getByRole("option").first().waitFor();
  assert.equal(await isHacked(page), false);
});

test("the policy is a header, word for word, and a foreign host is refused everywhere", async () => {
  const ours = origin(here.server);
  const answer = await fetch(`${ours}/_explorer/`);
  assert.equal(
    answer.headers.get("content-security-policy"),
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  );
  assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
  assert.equal(answer.headers.get("referrer-policy"), "no-referrer");
});

/** What an axe would say of a screen: names, contrast, headings, ids. Shadow roots too. */
function faults() {
  const wrong = [];
  const all = [];
  const collect = (root) => {
    for (const element of root.querySelectorAll("*")) {
      all.push(element);
      if (element.shadowRoot) collect(element.shadowRoot);
    }
  };
  collect(document);
  const isShown = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    element.getClientRects().length > 0 &&
    !element.closest("[aria-hidden=true]");
  const name = (element) => {
    const by = element.getAttribute("aria-labelledby");
    const labelled = by ? document.getElementById(by)?.textContent : "";
    const labels = [...(element.labels ?? [])].map((label) => label.textContent).join(" ");
    return (element.getAttribute("aria-label") || labelled || labels || element.textContent || element.title).trim();
  };
  const short = (element) => element.outerHTML.slice(0, 140);
  const parse = (text) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.fillStyle = text;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3]));
  const parentOf = (element) => element.parentElement ?? element.getRootNode().host ?? null;
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = parentOf(at)) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((under, top) => [...over(top, under), 1], [255, 255, 255, 1]);
  };
  const light = ([r, g, b]) => {
    const part = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const seen = new Set();
  for (const element of all) {
    if (!isShown(element)) continue;
    if (element.matches("a[href], button, input, select, textarea, [role=textbox], [role=img], svg[role], dialog, nav") && !name(element)) {
      wrong.push(`no name: ${short(element)}`);
    }
    if (element.id && element.getRootNode() === document) {
      if (seen.has(element.id)) wrong.push(`id twice: ${element.id}`);
      seen.add(element.id);
    }
    if (element.tabIndex > 0) wrong.push(`tabindex above 0: ${short(element)}`);
    for (const ids of ["aria-labelledby", "aria-describedby", "aria-controls"]) {
      for (const id of element.getAttribute(ids)?.split(/\s+/) ?? []) {
        if (!element.getRootNode().getElementById(id)) wrong.push(`${ids} names nothing: ${short(element)}`);
      }
    }
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
    if (!own || element.closest(":disabled") || element.namespaceURI !== "http://www.w3.org/1999/xhtml") continue;
    const style = getComputedStyle(element);
    const under = background(element);
    const ink = over(parse(style.color), under);
    const [a, b] = [light(ink), light(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) wrong.push(`contrast ${ratio.toFixed(2)}: ${short(element)}`);
  }
  if (document.querySelectorAll("h1").length > 1) wrong.push("more than one h1");
  if (!document.querySelector("main")) wrong.push("no main");
  if (!document.title) wrong.push("no title");
  if (!document.documentElement.lang) wrong.push("no language");
  if (document.documentElement.scrollWidth > innerWidth) wrong.push(`wider than the window: ${document.documentElement.scrollWidth}`);
  return [...new Set(wrong)];
}

/** Goes through the page with Tab: every stop is seen, in the order of the document. */
async function focusOrder(page) {
  await page.evaluate(() => document.querySelector("a.skip").focus());
  const stops = [];
  await page.evaluate(() => (window.stops = [document.querySelector("a.skip")]));
  for (let step = 0; step < 40; step++) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(() => {
      let element = document.activeElement;
      while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
      if (!element || element === document.body) return null;
      const { width, height } = element.getBoundingClientRect();
      const style = getComputedStyle(element);
      const host = element.getRootNode().host?.parentElement;
      // Where it stands in the document; what is in a shadow stands where its host does.
      const placed = element.getRootNode().host ?? element;
      // Behind the last stop it begins anew.
      if (placed === window.stops[0]) return null;
      const before = window.stops.at(-1);
      const follows = placed === before || before.compareDocumentPosition(placed) & Node.DOCUMENT_POSITION_FOLLOWING;
      const isNew = placed.shadowRoot !== null || !window.stops.includes(placed);
      window.stops.push(placed);
      const ring = style.outlineStyle !== "none" || (host && getComputedStyle(host).outlineStyle !== "none");
      return { tag: element.outerHTML.slice(0, 100), seen: width > 0 && height > 0, ring: Boolean(ring), inOrder: Boolean(follows) && isNew };
    });
    if (!stop) break;
    stops.push(stop);
  }
  return stops;
}

for (const [name, options] of [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["360 px wide", { width: 360, height: 740 }],
]) {
  test(`names, contrast and focus on each screen: ${name}`, async (t) => {
    const container = await makeContainer(here, { defaultTtl: 3000, throughput: 400 });
    await container.items.create({ id: "a", pk: "x", n: 1 });
    await container.items.create({ id: "b", pk: "x", ttl: 30 });
    await container.items.create({ id: "c", pk: "x", ttl: "soon" }).catch(() => undefined);
    const page = await open(t, here, "#/", options);
    const screens = {
      start: ["#/", () => page.getByRole("heading", { name: "Connect" }).waitFor()],
      items: [at(container), () => page.locator("tbody tr").nth(1).waitFor()],
      soonest: [at(container, "items", { order: "expiry" }), () => page.locator("tbody tr").nth(1).waitFor()],
      item: [at(container, "items", { id: "a", pk: '["x"]' }), () => page.locator(".pane .cm-content").waitFor()],
      ttl: [at(container, "ttl"), () => page.locator(".would").waitFor()],
      query: [at(container, "query"), () => page.locator(".cm-content").waitFor()],
      throughput: [at(container, "throughput"), () => page.locator(".throughput, .empty").first().waitFor()],
      feed: [at(container, "feed"), () => page.locator(".feed").waitFor()],
      requests: ["#/requests", () => page.locator("table.log").waitFor()],
      database: ["#/d/shop", () => page.locator("h1", { hasText: "shop" }).waitFor()],
    };
    for (const [screen, [hash, ready]] of Object.entries(screens)) {
      await go(page, hash);
      await ready();
      if (screen === "query") {
        await page.getByRole("button", { name: "Run", exact: true }).click();
        await page.locator(".results table").waitFor();
      }
      assert.deepEqual(await page.evaluate(faults), [], screen);
      const stops = await focusOrder(page);
      assert.ok(stops.length > 5, screen);
      assert.deepEqual(stops.filter(({ seen, ring, inOrder }) => !seen || !ring || !inOrder), [], screen);
    }
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Find" }).waitFor();
    assert.deepEqual(await page.evaluate(faults), [], "palette");
    await page.keyboard.press("Escape");
    const dialogs = {
      "New container": [at(container), () => page.keyboard.press("Control+k").then(() => page.keyboard.type("new container")).then(() => page.keyboard.press("Enter"))],
      Columns: [at(container), () => page.getByRole("button", { name: "Columns" }).click()],
      "Delete the container": [at(container), () => page.getByRole("button", { name: "Delete the container" }).click()],
      "Set ttl": [at(container, "items", { id: "a", pk: '["x"]' }), () => page.getByRole("button", { name: "Set ttl…" }).click()],
      "Kept queries": [at(container, "query"), () => page.getByRole("button", { name: "Kept queries" }).click()],
    };
    for (const [name, [hash, show]] of Object.entries(dialogs)) {
      await go(page, hash);
      await page.locator("h1", { hasText: container.id }).waitFor();
      await show();
      const dialog = page.getByRole("dialog", { name });
      await dialog.waitFor();
      assert.deepEqual(await page.evaluate(faults), [], name);
      assert.equal(await dialog.evaluate((element) => element.contains(document.activeElement)), true, name);
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    }
  });
}
