/** Throughput, as the page shows it. */
import { test } from "node:test";

import { admin, at, makeContainer, open, world } from "./harness.js";

const here = world();

test("a container shows what became of its throughput, and can enforce it", async (t) => {
  const given = await makeContainer(here, { throughput: 400 });
  await given.items.create({ id: "a", pk: "x" });
  const page = await open(t, here, at(given, "throughput"));
  await page.getByText("not enforced", { exact: true }).waitFor();
  const { total } = await admin(here.server, `containers/shop/${given.id}/throughput`);
  const used = page.locator(".figures > div", { hasText: "Used in all" }).locator("dd");
  await used.getByText(String(total.used)).waitFor();
  await page.getByRole("button", { name: "Enforce until the restart" }).click();
  await page.getByText("enforced", { exact: true }).waitFor();
});
