/** The items' screen: order, texts that stay as they are, and what others do meanwhile. */
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  admin,
  at,
  clipboard,
  copied,
  editor,
  go,
  isThere,
  makeContainer,
  nodes,
  open,
  origin,
  until,
  world,
  write,
} from "./harness.js";

const here = world();

/** Writes an item as text: what JavaScript would round, it must not touch. */
async function put(container, text, partitionKey = '["x"]') {
  const answer = await fetch(`${origin(here.server)}/dbs/shop/colls/${container.id}/docs`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${await token()}`,
      "x-ms-documentdb-partitionkey": partitionKey,
      "x-ms-documentdb-is-upsert": "true",
    },
    body: text,
  });
  assert.ok(answer.ok, await answer.text());
}

async function text(container, id, partitionKey) {
  return (await stored(container, id, partitionKey)).replace(/,"_rid":.*$/s, "");
}

async function etagOf(container, id, partitionKey) {
  return JSON.parse(await stored(container, id, partitionKey))._etag;
}

async function stored(container, id, partitionKey = '["x"]') {
  const answer = await fetch(
    `${origin(here.server)}/dbs/shop/colls/${container.id}/docs/${encodeURIComponent(id)}`,
    { headers: { authorization: `Bearer ${await token()}`, "x-ms-documentdb-partitionkey": partitionKey } },
  );
  assert.equal(answer.status, 200);
  return answer.text();
}

let session;
async function token() {
  session ??= await fetch(`${origin(here.server)}/_admin/v1/session`, {
    method: "POST",
    body: JSON.stringify({ key: here.server.key }),
  }).then((answer) => answer.json());
  return session.token;
}

const openItem = async (page, id) => {
  await page.locator(`tr[data-id="${id}"] a`).click();
  await editor(page, `Text of the item ${id}`).waitFor();
};
const saveItem = async (page) => {
  await page.getByRole("button", { name: /^Save/ }).click();
  await page.getByText(/^Saved\./).waitFor();
};

test("soonest to die first, and those that die within a time", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 5000 });
  const ttls = [300, -1, 40, undefined, 100000, 7];
  for (const [n, ttl] of ttls.entries()) {
    await container.items.create({ id: `i${n}`, pk: `p${n % 3}`, ...(ttl ? { ttl } : {}) });
  }
  const page = await open(t, here, at(container, "items", { order: "expiry" }));
  const ids = () => page.locator("tbody tr td.id").allInnerTexts();
  await until(async () => (await ids()).join() === "i5,i2,i0,i3,i4,i1");
  await page.getByLabel("That die within").selectOption("an hour");
  await until(async () => (await ids()).join() === "i5,i2,i0");
});

test("order by expiry is a sort of all items by what explain says", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 900 });
  const items = Array.from({ length: 130 }, (_, n) => {
    const seed = (n * 7919) % 1009;
    return { id: `i${n}`, pk: `p${seed % 7}`, ...(seed % 3 ? { ttl: seed % 5 ? seed + 1 : -1 } : {}) };
  });
  for (const item of items) {
    await container.items.create(item);
    if (item.id.endsWith("9")) await here.server.advance(3);
  }
  const expected = [];
  for (const { id, pk } of items) {
    const query = new URLSearchParams({ id, partitionKey: JSON.stringify([pk]) });
    const told = await admin(here.server, `containers/shop/${container.id}/ttl/explain?${query}`);
    if (told.state === "live") expected.push([told.expiresAt ?? Infinity, id]);
  }
  expected.sort((a, b) => a[0] - b[0]);
  const ends = new Map(expected.map(([end, id]) => [id, end]));
  const page = await open(t, here, at(container, "items", { order: "expiry" }));
  const shown = [];
  for (;;) {
    await page.locator("tbody tr").first().waitFor();
    shown.push(...(await page.locator("tbody tr td.id").allInnerTexts()));
    const next = page.getByRole("button", { name: "Next" });
    if (await next.isDisabled()) break;
    const last = shown.at(-1);
    await next.click();
    await until(async () => !(await page.locator("tbody tr td.id").allInnerTexts()).includes(last));
  }
  assert.deepEqual(shown.toSorted(), expected.map(([, id]) => id).toSorted());
  assert.deepEqual(shown.map((id) => ends.get(id)), expected.map(([end]) => end));
});

const TEXTS = [
  ["big", '{"id":"big","pk":"x","n":9007199254740993,"m":-9223372036854775808}'],
  ["spelled", '{"id":"spelled","pk":"x","a":10.0,"b":1e3,"c":1E+2,"d":0.10,"e":100000000000000000000000}'],
  ["escaped", '{"id":"escaped","pk":"x","s":"\\u00e4 \\/ \\t \\" \\\\ \\u2028 \\u0000"}'],
  ["logged", '{"id":"logged","pk":"x","_lsn":7,"_mine":[1.0],"n":1}'],
  ["twice", '{"id":"twice","pk":"x","a":{"b":[],"c":{}},"ä ö":"\u2028\u2029\ufeff"}'],
];

for (const [id, given] of TEXTS) {
  test(`what no browser keeps is saved unchanged: ${id}`, async (t) => {
    const container = await makeContainer(here);
    await put(container, given);
    const before = await text(container, id);
    const page = await open(t, here, at(container));
    await openItem(page, id);
    await saveItem(page);
    assert.equal(await text(container, id), before);
    // And with something else changed beside it.
    await page.getByRole("button", { name: "Keep for ever" }).click();
    await page.getByText("It is kept for ever.").waitFor();
    await page.getByRole("button", { name: "Touch" }).click();
    await page.getByText(/^Touched/).waitFor();
    const tail = before.endsWith("}") ? before.slice(0, -1) : before;
    assert.equal(await text(container, id), `${tail},"ttl":-1`);
    // And among many.
    await page.getByLabel(`Select ${id}`).check();
    const bulk = page.getByRole("group", { name: "With the selected items" });
    await bulk.getByRole("button", { name: "Touch" }).click();
    await page.getByText("Touched: 1 item.").waitFor();
    assert.equal(await text(container, id), `${tail},"ttl":-1`);
  });
}

test("half of a pair is told before anything is sent, and the text stays as it was written", async (t) => {
  const container = await makeContainer(here);
  const page = await open(t, here, at(container), { init: clipboard });
  await page.getByRole("button", { name: "New item" }).click();
  for (const half of ["\\ud800 and \\udc00", "\\udc00", "\\ud83d", "\\ud83d\\ud83d\\ude00", "\\ud83d\\n\\ude00"]) {
    const written = `{"id":"lone","pk":"x",\n"s":"${half}"}`;
    await write(page, "Text of the new item", written);
    await page.locator(".cm-lintRange-error").waitFor();
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("alert").getByText(/^Half of a surrogate pair: .* in line 2\.$/).waitFor();
    assert.equal(await copied(page), written);
    await write(page, "Text of the new item", "{}");
    await page.locator(".cm-lintRange-error").waitFor({ state: "detached" });
  }
  const posts = page.requests.filter((of) => of.method() === "POST" && of.url().endsWith("/docs"));
  assert.deepEqual(posts, []);
  // A whole pair goes out as it was written, escaped or not.
  await write(page, "Text of the new item", '{"id":"whole","pk":"x","s":"\\ud83d\\ude00 \\\\ud800 😀"}');
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Created.").waitFor();
  assert.equal((await container.item("whole", "x").read()).resource.s, "😀 \\ud800 😀");
});

/** What the server adds to an item counts, too. */
const ROOM = 256;

async function refusal(container, body) {
  const answer = await fetch(`${origin(here.server)}/dbs/shop/colls/${container.id}/docs`, {
    method: "POST",
    headers: { authorization: `Bearer ${await token()}`, "x-ms-documentdb-partitionkey": '["x"]' },
    body,
  });
  return answer.status;
}

test("an item of nearly 2 MiB is saved unchanged", async (t) => {
  const container = await makeContainer(here);
  const numbers = Array.from({ length: 90_000 }, (_, n) => `${9007199254740993n + BigInt(n)}`).join(",");
  const most = 2 * 1024 * 1024 - 1;
  const given = (rest) => `{"id":"large","pk":"x","n":[${numbers}],"s":"${"ö".repeat(100_000)}","t":"${"x".repeat(rest)}"}`;
  const left = most - Buffer.byteLength(given(0));
  await put(container, given(left - ROOM));
  assert.equal(await refusal(container, given(left + 1)), 413);
  const before = await text(container, "large");
  const page = await open(t, here, at(container));
  await openItem(page, "large");
  await saveItem(page);
  assert.equal(await text(container, "large"), before);
  assert.ok((await nodes(page)) <= 2000);
});

test("keys of every kind: hierarchical, undefined, null, numbers, beyond ASCII", async (t) => {
  const container = await makeContainer(here, {
    partitionKey: { paths: ["/a", "/b/c"], kind: "MultiHash", version: 2 },
  });
  const keys = { 1: '["\\u00e4\\u2028",1000]', 2: "[null,{}]", 3: "[{},{}]" };
  await put(container, '{"id":"1","a":"ä\u2028","b":{"c":1e3}}', keys[1]);
  await put(container, '{"id":"2","a":null}', keys[2]);
  await put(container, '{"id":"3"}', keys[3]);
  const page = await open(t, here, at(container));
  for (const [id, key] of Object.entries(keys)) {
    const before = await text(container, id, key);
    await openItem(page, id);
    await saveItem(page);
    assert.equal(await text(container, id, key), before);
    const etag = await etagOf(container, id, key);
    await page.getByRole("button", { name: "Touch" }).click();
    await page.getByText(/^Touched/).waitFor();
    assert.equal(await text(container, id, key), before);
    assert.notEqual(await etagOf(container, id, key), etag);
    await page.getByRole("button", { name: "Close the item" }).click();
  }
  await page.getByRole("button", { name: "New item" }).click();
  await write(page, "Text of the new item", '{"id":"4","a":"y","b":{"c":true}}');
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Created.").waitFor();
  assert.equal(await isThere(container, "4", ["y", true]), true);
});

const CONFLICT = [/status of 412/];

test("somebody else was quicker: three texts, and nothing is lost", async (t) => {
  const container = await makeContainer(here);
  await container.items.create({ id: "a", pk: "x", n: 1 });
  const page = await open(t, here, at(container), { expects: CONFLICT });
  await openItem(page, "a");
  await container.items.upsert({ id: "a", pk: "x", n: 2 });
  await write(page, "Text of the item a", '{"id":"a","pk":"x","n":3}');
  await page.getByRole("button", { name: /^Save/ }).click();
  await page.getByRole("region", { name: "As you opened it" }).getByText('"n": 1').waitFor();
  await page.getByRole("region", { name: "On the server now" }).getByText('"n": 2').waitFor();
  await page.getByRole("region", { name: "Yours" }).getByText('"n":3').waitFor();
  assert.equal((await container.item("a", "x").read()).resource.n, 2);
  await page.getByRole("button", { name: "Go on editing mine" }).click();
  await editor(page, "Text of the item a").getByText('"n":3').waitFor();
  await page.getByRole("button", { name: /^Save/ }).click();
  await page.getByRole("button", { name: "Save mine over it" }).click();
  await page.getByText("Saved.").waitFor();
  assert.equal((await container.item("a", "x").read()).resource.n, 3);
});

for (const [button, ttl] of [["Touch", undefined], ["Keep for ever", -1], ["Set ttl…", 300]]) {
  test(`${button} while something is written: what others changed meanwhile is told, not lost`, async (t) => {
    const container = await makeContainer(here);
    await container.items.create({ id: "a", pk: "x", n: 1 });
    const page = await open(t, here, at(container), { expects: CONFLICT });
    await openItem(page, "a");
    await write(page, "Text of the item a", '{"id":"a","pk":"x","n":3}');
    const renew = async () => {
      await page.getByRole("button", { name: button }).click();
      if (button !== "Set ttl…") return;
      await page.getByRole("textbox", { name: "Time to live" }).fill("300");
      await page.getByRole("button", { name: "Set", exact: true }).click();
    };
    // Alone it is only a longer life, and the text goes on.
    await renew();
    await page.getByText(/^(Touched|It is kept|The ttl is set)/).waitFor();
    await editor(page, "Text of the item a").getByText(/"n": ?3/).waitFor();
    const renewed = (await container.item("a", "x").read()).resource;
    assert.deepEqual([renewed.n, renewed.ttl], [1, ttl]);
    await container.items.upsert({ id: "a", pk: "x", n: 2 });
    await renew();
    await page.getByRole("region", { name: "As you opened it" }).getByText('"n": 1').waitFor();
    await page.getByRole("region", { name: "On the server now" }).getByText('"n": 2').waitFor();
    await page.getByRole("region", { name: "Yours" }).getByText(/"n": ?3/).waitFor();
    // Save, too, finds that it is not the newest.
    await page.getByRole("button", { name: "Go on editing mine" }).click();
    await page.getByRole("button", { name: /^Save/ }).click();
    await page.getByRole("region", { name: "On the server now" }).getByText('"n": 2').waitFor();
    assert.equal((await container.item("a", "x").read()).resource.n, 2);
  });
}

test("Touch of a text that nobody writes in takes what others changed with it", async (t) => {
  const container = await makeContainer(here);
  await container.items.create({ id: "a", pk: "x", n: 1 });
  const page = await open(t, here, at(container), { expects: CONFLICT });
  await openItem(page, "a");
  await container.items.upsert({ id: "a", pk: "x", n: 2 });
  await page.getByRole("button", { name: "Touch" }).click();
  await page.getByText(/^Touched/).waitFor();
  await editor(page, "Text of the item a").getByText('"n": 2').waitFor();
  assert.equal((await container.item("a", "x").read()).resource.n, 2);
});

test("unsaved text comes back: from another row, a tab, the palette, back, a page that is left", async (t) => {
  const container = await makeContainer(here);
  await container.items.create({ id: "a", pk: "x", n: 1 });
  await container.items.create({ id: "b", pk: "x", n: 1 });
  const page = await open(t, here, at(container), { init: clipboard });
  const mine = '{"id":"a","pk":"x","n":9007199254740993}';
  const back = async () => {
    await openItem(page, "a");
    await page.getByText(/did not save is back/).waitFor();
    await editor(page, "Text of the item a").getByText("9007199254740993").waitFor();
    assert.equal(await copied(page), mine);
  };
  await openItem(page, "a");
  await write(page, "Text of the item a", mine);
  await page.locator(".pane-head").getByText("unsaved").waitFor();
  await openItem(page, "b");
  await page.getByText(/^What you wrote is not saved/).waitFor();
  await page.locator('tr[data-id="a"]').getByText("unsaved").waitFor();
  await back();
  await page.getByRole("button", { name: "Close the item" }).click();
  await back();
  await page.getByRole("link", { name: "Query" }).click();
  await editor(page, "Query").waitFor();
  await page.getByRole("link", { name: "Items" }).click();
  await back();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Find" }).fill("requests");
  await page.keyboard.press("Enter");
  await page.locator("table.log").waitFor();
  await page.goBack();
  await editor(page, "Text of the item a").getByText("9007199254740993").waitFor();
  await go(page, "#/");
  await page.getByRole("heading", { name: "Connect" }).waitFor();
  await go(page, at(container));
  await back();
  // A new one has a place of its own.
  await page.getByRole("button", { name: "New item" }).click();
  await write(page, "Text of the new item", '{"id":"c","pk":"x","mine":1}');
  await openItem(page, "b");
  await page.getByRole("button", { name: "New item" }).click();
  await editor(page, "Text of the new item").getByText('"mine"').waitFor();
  // Leaving the page asks first, as long as there is something.
  const asked = async () => {
    let told = false;
    const answer = (dialog) => {
      told = dialog.type() === "beforeunload";
      return dialog.accept();
    };
    page.on("dialog", answer);
    await page.reload();
    page.off("dialog", answer);
    return told;
  };
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Created.").waitFor();
  await back();
  await page.getByRole("button", { name: "Drop it" }).click();
  await editor(page, "Text of the item a").getByText('"n": 1').waitFor();
  await page.locator(".pane-head").getByText("unsaved").waitFor({ state: "detached" });
  assert.equal(await asked(), false);
  await openItem(page, "a");
  await write(page, "Text of the item a", mine);
  assert.equal(await asked(), true);
});

test("a draft of what others changed, or of what has died, is told and not lost", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 100 });
  await container.items.create({ id: "a", pk: "x", n: 1 });
  const page = await open(t, here, at(container), { expects: [...CONFLICT, /status of 404/] });
  await openItem(page, "a");
  await write(page, "Text of the item a", '{"id":"a","pk":"x","n":3}');
  await page.getByRole("button", { name: "Close the item" }).click();
  await container.items.upsert({ id: "a", pk: "x", n: 2 });
  await openItem(page, "a");
  await page.getByRole("button", { name: /^Save/ }).click();
  await page.getByRole("region", { name: "As you opened it" }).getByText('"n": 1').waitFor();
  await page.getByRole("region", { name: "On the server now" }).getByText('"n": 2').waitFor();
  await page.getByRole("button", { name: "Go on editing mine" }).click();
  await page.getByRole("button", { name: "Close the item" }).click();
  await here.server.advance(100);
  await go(page, at(container, "items", { id: "a", pk: '["x"]' }));
  await page.getByText(/This item is gone/).waitFor();
  await editor(page, "Text of the item a").getByText(/"n": ?3/).waitFor();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Created.").waitFor();
  assert.equal((await container.item("a", "x").read()).resource.n, 3);
});

test("the button that deletes an item asks first", async (t) => {
  const container = await makeContainer(here);
  await container.items.create({ id: "a", pk: "x" });
  const page = await open(t, here, at(container));
  await openItem(page, "a");
  await page.getByRole("button", { name: "Delete the item" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete the item a?" });
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal(await isThere(container, "a", "x"), true);
  await page.getByRole("button", { name: "Delete the item" }).click();
  await dialog.getByRole("button", { name: "Delete it" }).click();
  await page.getByText("a is deleted.").waitFor();
  assert.equal(await isThere(container, "a", "x"), false);
});

test("an item that dies while it is edited: told, and its text is still there", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 30 });
  await container.items.create({ id: "a", pk: "x" });
  const page = await open(t, here, at(container), { expects: [/status of 404/], init: clipboard });
  await openItem(page, "a");
  await write(page, "Text of the item a", '{"id":"a","pk":"x","mine":9007199254740993}');
  await here.server.advance(30);
  await page.getByText(/This item is gone/).waitFor();
  assert.equal(await copied(page), '{"id":"a","pk":"x","mine":9007199254740993}');
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Created.").waitFor();
  assert.match(await text(container, "a"), /"mine":9007199254740993/);
});

test("a container that vanished: told, and the text is still there", async (t) => {
  const container = await makeContainer(here);
  await container.items.create({ id: "a", pk: "x" });
  const page = await open(t, here, at(container), { expects: [/status of 404/] });
  await openItem(page, "a");
  await write(page, "Text of the item a", '{"id":"a","pk":"x","mine":1}');
  await container.delete();
  await page.getByText(/There is no container of this name any more/).waitFor();
  await editor(page, "Text of the item a").getByText('"mine"').waitFor();
});

test("touch, set ttl and keep for ever begin a life anew", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 100 });
  await container.items.create({ id: "a", pk: "x", n: 1 });
  const page = await open(t, here, at(container));
  await openItem(page, "a");
  await page.getByText("The item has no ttl, so the container's default of 100 applies.").waitFor();
  await here.server.advance(60);
  const left = page.locator(".why strong");
  await left.getByText("40 s").waitFor();
  await page.getByRole("button", { name: "Touch" }).click();
  await left.getByText("1 m 40 s").waitFor();
  await page.getByRole("button", { name: "Set ttl…" }).click();
  await page.getByRole("textbox", { name: "Time to live" }).fill("5");
  await page.getByLabel("Unit").selectOption("minutes");
  await page.getByRole("button", { name: "Set", exact: true }).click();
  await left.getByText("5 m").waitFor();
  await page.getByText("The item's ttl of 300 overrides the container's default of 100.").waitFor();
  await page.getByRole("button", { name: "Keep for ever" }).click();
  await left.getByText("never").waitFor();
  assert.equal((await container.item("a", "x").read()).resource.ttl, -1);
});

test("a ttl that counts for nothing says so", async (t) => {
  const container = await makeContainer(here);
  await container.items.create({ id: "a", pk: "x", ttl: 5 });
  const page = await open(t, here, at(container));
  await page.locator('tr[data-id="a"] [title*="counts for nothing"]').waitFor();
  await openItem(page, "a");
  await page.getByText(/Its ttl of 5 counts for nothing while time to live is off/).waitFor();
});

test("many are selected and deleted; who was changed meanwhile stays", async (t) => {
  const container = await makeContainer(here);
  for (let n = 0; n < 12; n++) await container.items.create({ id: `i${n}`, pk: `p${n % 4}` });
  const page = await open(t, here, at(container), { expects: CONFLICT });
  await page.getByLabel("Select all rows of this page").check();
  await container.items.upsert({ id: "i3", pk: "p3", changed: true });
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("button", { name: "Delete 12 items" }).click();
  await page.getByText("1 stayed as they were.").waitFor();
  const { resources } = await container.items.readAll().fetchAll();
  assert.deepEqual(resources.map((item) => item.id), ["i3"]);
});

test("one timer counts all rows down", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 5000 });
  const operations = Array.from({ length: 40 }, (_, n) => ({
    operationType: "Create",
    resourceBody: { id: `i${n}`, pk: "x", ttl: 100 + n },
  }));
  await container.items.batch(operations, "x");
  const page = await open(t, here, at(container), { init: timers });
  await page.locator("tbody tr").nth(39).waitFor();
  await until(() => page.evaluate(() => window.timers.size === 1), "There are more timers than one.");
  await here.server.advance(50);
  await page.locator('tr[data-id="i0"] .expires').getByText("50 s", { exact: true }).waitFor();
  await until(() => page.evaluate(() => window.timers.size === 1), "There are more timers than one.");
});

/** Which timers of a page have not gone off yet. */
function timers() {
  const { setTimeout: wait, clearTimeout: forget } = window;
  window.timers = new Set();
  window.setTimeout = (act, ...rest) => {
    const timer = wait(() => {
      window.timers.delete(timer);
      act();
    }, ...rest);
    window.timers.add(timer);
    return timer;
  };
  window.clearTimeout = (timer) => {
    window.timers.delete(timer);
    forget(timer);
  };
  window.setInterval = () => {
    throw new Error("A timer of its own.");
  };
}

test("the document stays small, whatever the container holds", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 5000 });
  for (let n = 0; n < 8; n++) {
    const operations = Array.from({ length: 100 }, (_, m) => ({
      operationType: "Create",
      resourceBody: { id: `${n}-${m}`, pk: "x", a: n, b: m, c: "text", d: [1, 2], e: { f: 1 } },
    }));
    await container.items.batch(operations, "x");
  }
  const page = await open(t, here, at(container));
  await page.locator("tbody tr").nth(39).waitFor();
  assert.ok((await nodes(page)) <= 2000);
  await openItem(page, "0-0");
  assert.ok((await nodes(page)) <= 2000);
  await go(page, at(container, "ttl"));
  await page.getByText("What expires when").waitFor();
  assert.ok((await nodes(page)) <= 2000);
});

test("amber under a minute, struck through at 0, gone with the next page", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 1000 });
  await container.items.create({ id: "a", pk: "x", ttl: 61 });
  await container.items.create({ id: "b", pk: "x" });
  const page = await open(t, here, at(container));
  // What is on the screen stays as it was read, until somebody reads again.
  await page.locator('tr[data-id="a"]').waitFor();
  const left = page.locator('tr[data-id="a"] .expires .left');
  const isSoon = () => left.evaluate((element) => element.classList.contains("soon"));
  await here.server.advance(1);
  await left.getByText("1 m", { exact: true }).waitFor();
  assert.equal(await isSoon(), false);
  await here.server.advance(1);
  await left.getByText("59 s", { exact: true }).waitFor();
  assert.equal(await isSoon(), true);
  // Nothing more is told of the items: the row counts by itself.
  await page.route("**/items?*", () => undefined);
  await here.server.advance(59);
  await page.locator('tr[data-id="a"].dead s').getByText("0 s").waitFor();
  await page.unroute("**/items?*");
  await page.getByRole("button", { name: "Read again" }).click();
  await page.locator('tr[data-id="a"]').waitFor({ state: "detached" });
  await page.locator('tr[data-id="b"]').waitFor();
});

test("columns are chosen, fields within fields too, and stay chosen", async (t) => {
  const container = await makeContainer(here);
  await container.items.create({ id: "a", pk: "x", one: 1, two: 2, three: 3, four: 4, cart: { total: 12.5 } });
  const page = await open(t, here, at(container));
  const heads = () => page.locator("table.rows thead th.cell").allInnerTexts();
  await until(async () => (await heads()).join() === "one,two,three");
  await page.getByRole("button", { name: "Columns" }).click();
  const dialog = page.getByRole("dialog", { name: "Columns" });
  await dialog.getByLabel("two", { exact: true }).uncheck();
  await dialog.getByLabel("four", { exact: true }).check();
  await dialog.getByLabel("A field within a field").fill("cart.total");
  await dialog.getByRole("button", { name: "Add" }).click();
  await dialog.getByRole("button", { name: "Done" }).click();
  await until(async () => (await heads()).join() === "one,three,four,cart/total");
  assert.deepEqual(await page.locator('tr[data-id="a"] td.cell').allInnerTexts(), ["1", "3", "4", "12.5"]);
  await page.reload();
  await until(async () => (await heads()).join() === "one,three,four,cart/total");
  await page.getByRole("button", { name: "Columns" }).click();
  await dialog.getByRole("button", { name: "As at first" }).click();
  await dialog.getByRole("button", { name: "Done" }).click();
  await until(async () => (await heads()).join() === "one,two,three");
});

test("many are touched, given a ttl and kept for ever", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 100 });
  for (let n = 0; n < 7; n++) await container.items.create({ id: `i${n}`, pk: `p${n % 2}`, n });
  const page = await open(t, here, at(container));
  const bulk = page.getByRole("group", { name: "With the selected items" });
  const all = async () => (await container.items.readAll().fetchAll()).resources.sort((a, b) => a.n - b.n);
  const select = () => page.getByLabel("Select all rows of this page").check();
  const ends = (text) =>
    until(async () => (await page.locator("tbody .expires").allInnerTexts()).join() === Array(7).fill(text).join());
  await ends("1 m 40 s");
  await here.server.advance(60);
  await ends("40 s");
  await select();
  // What others write meanwhile stays.
  await container.items.upsert({ id: "i3", pk: "p1", n: 3, theirs: true });
  await bulk.getByRole("button", { name: "Touch" }).click();
  await page.getByText("Touched: 7 items.").waitFor();
  await ends("1 m 40 s");
  assert.equal((await all())[3].theirs, true);
  await select();
  await bulk.getByRole("button", { name: "Set ttl…" }).click();
  await page.getByRole("textbox", { name: "Time to live" }).fill("2");
  await page.getByLabel("Unit").selectOption("hours");
  await page.getByRole("button", { name: "Set", exact: true }).click();
  await page.getByText("Ttl set: 7 items.").waitFor();
  await ends("2 h");
  assert.deepEqual((await all()).map(({ ttl }) => ttl), Array(7).fill(7200));
  await select();
  await bulk.getByRole("button", { name: "Set ttl…" }).click();
  await page.getByLabel("What the items get").selectOption("no ttl: the container's default");
  await page.getByRole("button", { name: "Set", exact: true }).click();
  await ends("1 m 40 s");
  assert.deepEqual((await all()).filter((item) => "ttl" in item), []);
  await select();
  await bulk.getByRole("button", { name: "Keep for ever" }).click();
  await page.getByText("Kept for ever: 7 items.").waitFor();
  await ends("never");
  assert.deepEqual((await all()).map(({ ttl, n }) => [ttl, n]), Array.from({ length: 7 }, (_, n) => [-1, n]));
});

test("what is no JSON, or no object, is told and not sent", async (t) => {
  const container = await makeContainer(here);
  await container.items.create({ id: "a", pk: "x" });
  const page = await open(t, here, at(container), { init: clipboard });
  await openItem(page, "a");
  for (const [written, told] of [
    ['{"id":"a","pk":"x",}', /^This is no JSON: A string in double quotes/],
    ['{"id":"a","pk":"x"', /^This is no JSON: A comma or }/],
    ['["a"]', "An item is an object."],
  ]) {
    await write(page, "Text of the item a", written);
    await page.getByRole("button", { name: /^Save/ }).click();
    await page.getByRole("alert").getByText(told).waitFor();
    assert.equal(await copied(page), written);
  }
  assert.deepEqual(page.requests.filter((request) => request.method() === "PUT"), []);
});
