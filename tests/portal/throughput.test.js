/** Throughput, as the page shows it. */
import { test } from "node:test";

import { admin, at, go, makeContainer, open, world } from "./harness.js";

const here = world();

test("a container without a throughput says so, one with it shows what became of it", async (t) => {
  const plain = await makeContainer(here);
  const given = await makeContainer(here, { throughput: 400 });
  const page = await open(t, here, at(plain, "throughput"));
  await page.getByText(/nothing is metered/).waitFor();
  await given.items.create({ id: "a", pk: "x" });
  await go(page, at(given, "throughput"));
  await page.getByText("not enforced", { exact: true }).waitFor();
  const { total } = await admin(here.server, `containers/shop/${given.id}/throughput`);
  const used = page.locator(".figures > div", { hasText: "Used in all" }).locator("dd");
  await used.getByText(String(total.used)).waitFor();
  await page.getByRole("button", { name: "Enforce until the restart" }).click();
  await page.getByText("enforced", { exact: true }).waitFor();
});
