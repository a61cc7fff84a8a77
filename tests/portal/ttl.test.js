/** Time to live, through the controls of the page. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { admin, at, go, isThere, makeContainer, open, until, world } from "./harness.js";

const here = world();

const DEFAULTS = { off: undefined, none: -1, on: 50 };
const ITEMS = { plain: {}, never: { ttl: -1 }, own: { ttl: 20 } };

/** When each of the nine dies, after so many seconds; undefined is never. */
const DIES = {
  off: { plain: undefined, never: undefined, own: undefined },
  none: { plain: undefined, never: undefined, own: 20 },
  on: { plain: 50, never: undefined, own: 20 },
};

async function choose(page, name, seconds) {
  const labels = { off: "Off", none: "No default", on: "On" };
  await page.getByRole("radio", { name: new RegExp(`^${labels[name]}`) }).check();
  if (name !== "on") return;
  await page.getByLabel("Unit").selectOption("seconds");
  await page.getByRole("textbox", { name: "Time to live" }).fill(String(seconds));
}

const saveButton = (page) => page.getByRole("button", { name: "Save", exact: true });

test("the nine cells of default and own ttl, through the controls", async (t) => {
  for (const [name, expected] of Object.entries(DEFAULTS)) {
    const container = await makeContainer(here, { defaultTtl: name === "off" ? 7 : undefined });
    for (const [id, fields] of Object.entries(ITEMS)) {
      await container.items.create({ id, pk: "x", ...fields });
    }
    const page = await open(t, here, at(container, "ttl"));
    await choose(page, name, expected);
    await saveButton(page).click();
    await page.getByText("The default is changed.").waitFor();
    const { resource } = await container.read();
    assert.equal(resource.defaultTtl, expected, name);

    await go(page, at(container, "items"));
    for (const id of Object.keys(ITEMS)) {
      const cell = page.locator(`tr[data-id="${id}"] .expires`);
      const dies = DIES[name][id];
      await cell.getByText(dies === undefined ? "never" : `${dies} s`, { exact: true }).waitFor();
    }
    await here.server.advance(49);
    await here.server.advance(1);
    for (const id of Object.keys(ITEMS)) {
      assert.equal(await isThere(container, id, "x"), DIES[name][id] === undefined, `${name} ${id}`);
    }
  }
});

test("values that are no lifetime cannot be saved", async (t) => {
  const container = await makeContainer(here);
  const page = await open(t, here, at(container, "ttl"));
  for (const text of ["", "0", "-1", "-5", "1.5", "1e3", "abc", "2147483648", "99999999999999999999"]) {
    await choose(page, "on", text);
    assert.equal(await saveButton(page).isDisabled(), true, `'${text}'`);
    await page.getByRole("textbox", { name: "Time to live" }).press("Enter");
  }
  await page.getByLabel("Unit").selectOption("days");
  await page.getByRole("textbox", { name: "Time to live" }).fill("24856");
  assert.equal(await saveButton(page).isDisabled(), true, "24856 days");
  assert.equal((await container.read()).resource.defaultTtl, undefined);
  assert.equal(page.requests.some((request) => request.method() === "PUT"), false);
  await choose(page, "on", "2147483647");
  await saveButton(page).click();
  await page.getByText("The default is changed.").waitFor();
  assert.equal((await container.read()).resource.defaultTtl, 2147483647);
});

for (const skewMinutes of [-10, 10]) {
  test(`a row is at 0 in the second of the 404, browser off by ${skewMinutes} min`, async (t) => {
    const container = await makeContainer(here, { defaultTtl: 90 * 86400 + 100 });
    await container.items.create({ id: "a", pk: "x" });
    await container.items.create({ id: "b", pk: "x", ttl: 100 });
    const page = await open(t, here, at(container, "items"), { skewMinutes });
    const cell = (id) => page.locator(`tr[data-id="${id}"] .expires`);
    await cell("b").getByText("1 m 40 s", { exact: true }).waitFor();
    await here.server.advance(99);
    await cell("b").getByText("1 s", { exact: true }).waitFor();
    assert.equal(await isThere(container, "b", "x"), true);
    await page.locator(".clock button").first().click();
    await here.server.advance(1);
    assert.equal(await isThere(container, "b", "x"), false);
    await until(async () => (await cell("b").allInnerTexts()).every((text) => text === "0 s"));
    // Struck through, and the whole row with it; or gone already.
    assert.equal(await page.locator('tr[data-id="b"]:not(.dead)').count(), 0);
    assert.equal(await cell("b").locator("s").count(), await cell("b").count());
    await page.getByRole("button", { name: "+90 d" }).click();
    await until(async () => (await cell("a").allInnerTexts()).every((text) => text === "0 s"));
    assert.equal(await isThere(container, "a", "x"), false);
  });
}

test("after a change of the default by another client a row is at 0 in the second of the 404", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 1000 });
  await container.items.create({ id: "a", pk: "x" });
  await container.items.create({ id: "b", pk: "x", ttl: 5000 });
  const page = await open(t, here, at(container, "items"), { skewMinutes: 10 });
  const cell = (id) => page.locator(`tr[data-id="${id}"] .expires`);
  await cell("a").getByText("16 m 40 s", { exact: true }).waitFor();
  const { resource } = await container.read();
  await container.replace({ ...resource, defaultTtl: 90 });
  // Nobody reads again: the page notes it by itself.
  await cell("a").getByText("1 m 30 s", { exact: true }).waitFor();
  await here.server.advance(89);
  await cell("a").getByText("1 s", { exact: true }).waitFor();
  assert.equal(await isThere(container, "a", "x"), true);
  await here.server.advance(1);
  assert.equal(await isThere(container, "a", "x"), false);
  await until(async () => (await cell("a").allInnerTexts()).every((text) => text === "0 s"));
  await cell("b").getByText("1 h 21 m").or(cell("b").getByText("1 h 21 m 50 s")).first().waitFor();
});

test("+1 d moves the clock by a day, and all with it", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 86400 + 30 });
  await container.items.create({ id: "a", pk: "x" });
  const page = await open(t, here, at(container, "items"));
  const before = await here.server.now();
  await page.locator(".clock > button").click();
  await page.getByRole("button", { name: "+1 d" }).click();
  await until(async () => (await here.server.now()) === before + 86400);
  await page.locator('tr[data-id="a"] .expires').getByText("30 s", { exact: true }).waitFor();
});

test("what another default would do, within an hour and within a day too", async (t) => {
  const container = await makeContainer(here, { defaultTtl: -1 });
  for (let n = 0; n < 4; n++) {
    await container.items.create({ id: `${n}`, pk: "x" });
    await container.items.create({ id: `own ${n}`, pk: "x", ttl: 100_000 });
    await here.server.advance(1800);
  }
  await container.items.create({ id: "never", pk: "x", ttl: -1 });
  const page = await open(t, here, at(container, "ttl"));
  const told = async () => {
    const names = ["at once", "within an hour", "within a day", "later", "never"];
    const cells = names.map((name) => page.locator(`tr[data-when="${name}"] td`).first().innerText());
    return (await Promise.all(cells)).join();
  };
  // They are 2 h, 1½ h, 1 h and ½ h old.
  await until(async () => (await told()) === "0,0,0,4,5");
  await choose(page, "on", 3601);
  await page.getByText(/^With this default/).waitFor();
  await until(async () => (await told()) === "2,4,4,4,1");
  await choose(page, "on", 88_000);
  await until(async () => (await told()) === "0,0,4,4,1");
  const wanted = await admin(here.server, `containers/shop/${container.id}/ttl/whatif?defaultTtl=88000`);
  assert.deepEqual([wanted.expiredInHour.items, wanted.expiredInDay.items], [0, 4]);
});

test("a running clock: 0 is never shown before the 404", async (t) => {
  const container = await makeContainer(here, { defaultTtl: -1 });
  const page = await open(t, here, at(container, "items", { order: "expiry" }), {
    skewMinutes: 10,
    expects: [/status of 404/],
  });
  await page.getByText("No items are alive here.").waitFor();
  await here.server.run();
  t.after(() => here.server.freeze());
  await container.items.create({ id: "a", pk: "x", ttl: 3 });
  await page.getByRole("button", { name: "Read again" }).click();
  const status = await page.evaluate(async (path) => {
    const token = sessionStorage.getItem("dayfly.session");
    const read = async () => {
      const headers = { authorization: `Bearer ${token}`, "x-ms-documentdb-partitionkey": '["x"]' };
      return (await fetch(path, { headers })).status;
    };
    const cell = () => document.querySelector('tr[data-id="a"] .expires');
    await new Promise((resolve) => {
      const isStruck = () => cell()?.querySelector("s")?.textContent === "0 s";
      const look = () => (isStruck() ? resolve() : requestAnimationFrame(look));
      look();
    });
    return read();
  }, `/dbs/shop/colls/${container.id}/docs/a`);
  assert.equal(status, 404);
});

test("what another default would do is what it then does", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 1000 });
  for (let n = 0; n < 20; n++) {
    await container.items.create({ id: `${n}`, pk: "x", ...(n % 4 === 0 ? { ttl: -1 } : {}) });
    await here.server.advance(10);
  }
  const page = await open(t, here, at(container, "ttl"));
  await choose(page, "on", 95);
  const cell = page.locator('tr[data-when="at once"] td').first();
  const { expired } = await admin(here.server, `containers/shop/${container.id}/ttl/whatif?defaultTtl=95`);
  assert.ok(expired.items > 0 && expired.items < 15);
  await cell.getByText(String(expired.items), { exact: true }).waitFor();
  const before = (await container.items.readAll().fetchAll()).resources.length;
  await saveButton(page).click();
  await page.getByText("The default is changed.").waitFor();
  const left = (await container.items.readAll().fetchAll()).resources.length;
  assert.equal(before - left, expired.items);
  const history = page.getByRole("region", { name: "Changes of the default" });
  await history.getByText(String(expired.items), { exact: true }).waitFor();
});

/** Numbers that only look random, the same each time. */
function lcg(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

test("in 200 random containers, what would expire is what is gone", async (t) => {
  const random = lcg(22);
  const page = await open(t, here);
  const { server } = here;
  const seen = { checked: 0, expired: 0 };
  while (seen.checked < 200) {
    const defaultTtl = [undefined, -1, 1 + random(300)][random(3)];
    const container = await makeContainer(here, { defaultTtl });
    const body = Array.from({ length: 1 + random(12) }, (_, n) => {
      const ttl = [undefined, -1, 1 + random(300), 1 + random(300)][random(4)];
      return { operationType: "Create", resourceBody: { id: `${n}`, pk: "x", ...(ttl ? { ttl } : {}) } };
    });
    await container.items.batch(body.slice(0, 6), "x");
    await server.advance(random(100));
    if (body.length > 6) await container.items.batch(body.slice(6), "x");
    await server.advance(random(100));
    const ids = async () => (await container.items.readAll().fetchAll()).resources.length;
    const before = await ids();
    const next = ["off", "none", "on"][random(3)];
    const seconds = 1 + random(200);
    await go(page, at(container, "ttl"));
    await page.getByRole("heading", { name: container.id, exact: true }).waitFor();
    await choose(page, next, seconds);
    const wanted = next === "on" ? seconds : next === "off" ? "off" : -1;
    if (wanted === (defaultTtl ?? "off")) continue;
    seen.checked++;
    const { expired } = await admin(server, `containers/shop/${container.id}/ttl/whatif?defaultTtl=${wanted}`);
    const cell = page.locator('tr[data-when="at once"] td').first();
    await page.getByText(/^With this default/).waitFor();
    await cell.getByText(String(expired.items), { exact: true }).waitFor();
    await saveButton(page).click();
    await page.getByText(/^As it is/).waitFor();
    assert.equal(before - (await ids()), expired.items, `round ${seen.checked}`);
    if (expired.items > 0) seen.expired++;
  }
  // It proves nothing where nothing dies.
  assert.ok(seen.expired >= 50, `in ${seen.expired} of ${seen.checked} something expired`);
});

test("the purge is paused, resumed and run", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 10 });
  await container.items.create({ id: "a", pk: "x" });
  const page = await open(t, here, at(container, "ttl"));
  const purge = page.getByRole("region", { name: "Purge" });
  await purge.getByRole("button", { name: "Pause" }).click();
  await purge.getByText("paused", { exact: true }).waitFor();
  await here.server.advance(11);
  const backlog = page.locator(".figures > div", { hasText: "Expired, not purged" }).locator("dd");
  await backlog.getByText("1", { exact: true }).waitFor();
  await purge.getByRole("button", { name: "Run now" }).click();
  await page.getByText("1 item removed from the disk.").waitFor();
  await backlog.getByText("0", { exact: true }).waitFor();
  await purge.getByRole("button", { name: "Resume" }).click();
  await purge.getByRole("button", { name: "Pause" }).waitFor();
});

test("the forecast shows own ttl apart, later and never in words", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 90 });
  await container.items.create({ id: "a", pk: "x" });
  await container.items.create({ id: "b", pk: "x", ttl: 100 });
  await container.items.create({ id: "c", pk: "x", ttl: 86400 });
  await container.items.create({ id: "d", pk: "x", ttl: -1 });
  const page = await open(t, here, at(container, "ttl"));
  const forecast = page.getByRole("region", { name: "Forecast" });
  await forecast.getByText(/own: 1 .*default: 1 .*within 1 h: 2 · later: 1 · never: 1/).waitFor();
  await forecast.getByRole("button", { name: "by hour" }).click();
  await forecast.getByText(/own: 2 .*default: 1 .*within 2 d: 3 · later: 0 · never: 1/).waitFor();
  await forecast.getByRole("button", { name: "by day" }).click();
  await forecast.getByText(/own: 2 .*default: 1 .*within 60 d: 3 · later: 0 · never: 1/).waitFor();
  await forecast.getByRole("button", { name: "own width" }).click();
  await forecast.getByLabel("Seconds of a bar").fill("2");
  await forecast.getByText(/within .*: 1 · later: 2 · never: 1/).or(forecast.getByText(/within .*: 2 · later: 1 · never: 1/)).waitFor();
});
