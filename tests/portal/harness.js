/** A browser, a server whose clock the tests move, and what every test demands of the page. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before } from "node:test";

import { CosmosClient } from "@azure/cosmos";
import { Dayfly } from "dayfly-test";
import { chromium } from "playwright-core";

const OPTIONS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
  "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'";

const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

/** How long a test waits for what must come; nothing waits for time to pass. */
export const PATIENCE = 15_000;

/** A server for all tests of a file, empty at the start of each. */
export function world(...flags) {
  const made = { server: null, browser: null, client: null, flags };
  let folder;
  before(async () => {
    const given = flags.indexOf("--key") + 1;
    const Server = given > 0 ? withKey(flags[given]) : Dayfly;
    made.server = await Server.start(...(flags.length > 0 ? flags : ["--memory"]));
    made.client = new CosmosClient({ endpoint: made.server.endpoint, key: made.server.key });
    folder = mkdtempSync(join(tmpdir(), "dayfly-portal-"));
    made.browser = await chromium.launch({
      executablePath: process.env.CHROMIUM,
      headless: true,
      args: OPTIONS,
      // Its own empty profile, and nothing of it stays.
      env: { ...process.env, HOME: folder },
    });
  });
  after(async () => {
    await made.browser?.close();
    await made.server?.stop();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });
  return made;
}

/** A server whose key is not the public one: it does not print it. */
function withKey(key) {
  return class extends Dayfly {
    get key() {
      return key;
    }
    set key(printed) {
      assert.equal(printed, "<your key>");
    }
  };
}

/** The origin of a server, with the name that people use. */
export function origin(server) {
  const url = new URL(server.endpoint);
  return `http://localhost:${url.port}`;
}

/**
 * A tab of its own, at a place of the page. When the test is over, it is closed, and everything
 * that went wrong unseen is told: what the console says, what the policy refused, and each
 * request to another origin.
 */
export async function open(test, { server, browser }, hash = "#/", options = {}) {
  const { skewMinutes = 0, expects = [], width = 1280, height = 800, init, ...more } = options;
  const context = await browser.newContext({ viewport: { width, height }, ...more });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const wrong = [];
  const requests = [];
  page.on("console", (message) => {
    const text = `${message.text()} ${message.location().url}`;
    if (!expects.some((expected) => expected.test(text))) wrong.push(`console: ${text}`);
  });
  page.on("pageerror", (error) => wrong.push(`error: ${error.stack}`));
  page.on("request", (request) => requests.push(request));
  await page.exposeFunction("reportPolicy", (what) => wrong.push(`policy: ${what}`));
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) =>
      window.reportPolicy(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`),
    );
  });
  if (skewMinutes !== 0) await page.addInitScript(skewed, skewMinutes * 60_000);
  if (init) await page.addInitScript(init);
  await servePage(page);
  test.after(async () => {
    await context.close();
    const ours = origin(server);
    for (const request of requests) {
      const url = new URL(request.url());
      if (url.origin !== ours && url.protocol !== "blob:") wrong.push(`another origin: ${url}`);
    }
    assert.deepEqual(wrong, []);
  });
  page.requests = requests;
  await page.goto(`${origin(server)}/_explorer/${hash}`);
  return page;
}

/** The browser's clock is wrong, in whatever way it is asked. */
function skewed(milliseconds) {
  const RealDate = Date;
  const off = () => RealDate.now() + milliseconds;
  globalThis.Date = class extends RealDate {
    constructor(...given) {
      if (given.length === 0) super(off());
      else super(...given);
    }
    static now() {
      return off();
    }
  };
}

/** The page from a folder, for those who write it. */
async function servePage(page) {
  const folder = process.env.PORTAL_BUILD;
  if (!folder) return;
  await page.route("**/_explorer/**", (route) => {
    const name = basename(new URL(route.request().url()).pathname) || "index.html";
    const path = join(folder, name === "_explorer" ? "index.html" : name);
    if (!existsSync(path)) return route.continue();
    const contentType = TYPES[name.split(".").pop()] ?? TYPES.html;
    const headers = { "content-security-policy": POLICY };
    return route.fulfill({ body: readFileSync(path), contentType, headers });
  });
}

/** A container of its own, by the SDK. */
let made = 0;
export async function makeContainer({ client }, definition = {}) {
  const { database } = await client.databases.createIfNotExists({ id: "shop" });
  const id = definition.id ?? `c${++made}`;
  const { container } = await database.containers.create({ partitionKey: "/pk", ...definition, id });
  return container;
}

/** The address of a container's screen. */
export function at(container, tab = "items", params = {}) {
  const query = new URLSearchParams(params).toString();
  const names = ["c", "shop", container.id, tab].map(encodeURIComponent).join("/");
  return `#/${names}${query ? `?${query}` : ""}`;
}

/** Goes to another place of the page that is open. */
export async function go(page, hash) {
  await page.evaluate((next) => (location.hash = next), hash);
}

/** Asks the server itself, in the words of the admin API. */
export async function admin(server, call) {
  const answer = await fetch(`${origin(server)}/_admin/v1/${call}`, {
    headers: { authorization: `Bearer ${server.key}` },
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
}

/** Whether a read by the SDK finds an item. */
export async function isThere(container, id, partitionKey) {
  const { statusCode } = await container.item(id, partitionKey).read();
  return statusCode === 200;
}

/** The text in the editor with this name. */
export function editor(page, name) {
  return page.getByRole("textbox", { name });
}

/** Writes a text into an editor, in place of what is there. */
export async function write(page, name, text) {
  await editor(page, name).focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
}

/** What the editor has as its text, whole, also where it is not on the screen. */
export async function copied(page) {
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  return page.evaluate(() => window.clipboardText);
}

/** A clipboard that a test can look into. */
export function clipboard() {
  Object.defineProperty(navigator, "clipboard", {
    value: { writeText: async (text) => void (window.clipboardText = text) },
  });
}

/** How many nodes the document has, in shadow roots too. */
export function nodes(page) {
  return page.evaluate(() => {
    const count = (root) => {
      let sum = 0;
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_ALL);
      for (let node = walker.currentNode; node; node = walker.nextNode()) {
        sum++;
        if (node.shadowRoot) sum += count(node.shadowRoot);
      }
      return sum;
    };
    return count(document);
  });
}

/** Waits until something holds. */
export async function until(what, message) {
  const end = performance.now() + PATIENCE;
  for (;;) {
    const told = await what();
    if (told) return told;
    if (performance.now() > end) assert.fail(message ?? "It did not come.");
    await new Promise((resolve) => setImmediate(resolve));
  }
}
