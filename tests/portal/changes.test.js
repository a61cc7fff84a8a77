/** A change of the default that waits, and one that the server's guard wants confirmed. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { at, go, isThere, makeContainer, open, until, world } from "./harness.js";

const here = world("--memory", "--ttl-change-delay", "60", "--ttl-change-guard", "10");

async function save(page, seconds) {
  await page.getByRole("radio", { name: /^On/ }).check();
  await page.getByLabel("Unit").selectOption("seconds");
  await page.getByRole("textbox", { name: "Time to live" }).fill(String(seconds));
  await page.getByRole("button", { name: "Save", exact: true }).click();
}

test("a change that waits: rows count to their true end, and it can be taken back", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 1000 });
  await container.items.create({ id: "a", pk: "x" });
  await container.items.create({ id: "b", pk: "x", ttl: 500 });
  const page = await open(t, here, at(container, "ttl"), { skewMinutes: -10 });
  const cell = (id) => page.locator(`tr[data-id="${id}"] .expires`);
  await save(page, 80);
  await page.getByText("The change counts in 1 m.").waitFor();
  await page.getByText(/The default changes from/).waitFor();

  await go(page, at(container, "items"));
  await cell("a").getByText("1 m 20 s", { exact: true }).waitFor();
  await cell("b").getByText("8 m 20 s", { exact: true }).waitFor();
  await page.getByText(/The countdowns here know of it/).waitFor();

  await go(page, at(container, "ttl"));
  await page.getByRole("button", { name: "Take back" }).click();
  await page.getByText("The change is taken back.").waitFor();
  await page.getByRole("button", { name: "Take back" }).waitFor({ state: "detached" });
  await go(page, at(container, "items"));
  await cell("a").getByText("16 m 40 s", { exact: true }).waitFor();

  await go(page, at(container, "ttl"));
  await save(page, 80);
  await page.getByText(/The default changes from/).waitFor();
  await go(page, at(container, "items"));
  await here.server.advance(79);
  await cell("a").getByText("1 s", { exact: true }).waitFor();
  assert.equal(await isThere(container, "a", "x"), true);
  await here.server.advance(1);
  assert.equal(await isThere(container, "a", "x"), false);
  await until(async () => (await cell("a").allInnerTexts()).every((text) => text === "0 s"));
});

test("a change that expires many asks for the name of the container", async (t) => {
  const container = await makeContainer(here, { defaultTtl: 1000 });
  for (let n = 0; n < 5; n++) await container.items.create({ id: `${n}`, pk: "x" });
  await here.server.advance(100);
  const page = await open(t, here, at(container, "ttl"), { expects: [/status of 412/] });
  await save(page, 10);
  const dialog = page.getByRole("dialog", { name: "This expires many items at once" });
  await dialog.getByText(/would expire 5 of 5 items/).waitFor();
  const confirm = dialog.getByRole("button", { name: "Save, and let them expire" });
  assert.equal(await confirm.isDisabled(), true);
  await dialog.getByRole("textbox").fill("another");
  assert.equal(await confirm.isDisabled(), true);
  assert.equal((await container.read()).resource._pendingDefaultTtl, undefined);
  await dialog.getByRole("textbox").fill(container.id);
  await confirm.click();
  await page.getByText(/The default changes from/).waitFor();
  const put = page.requests.findLast((request) => request.method() === "PUT");
  assert.equal(put.headers()["x-dayfly-confirm-expiry"], "true");
});
