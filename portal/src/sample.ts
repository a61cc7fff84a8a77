// A sample to look around in: a thousand sessions, of every class of time to live.

import { ask, askFor, Refusal } from "./api";
import { createContainer, createDatabase } from "./creation";
import { reload } from "./live";
import { quoted } from "./json";

const USERS = 20;
const EACH = 50;
const DEFAULT_TTL = 3600;

const BROWSERS = ["Firefox", "Chrome", "Safari", "Edge"];
const CITIES = ["Oslo", "Lima", "Accra", "Pune", "Kyoto", "Turin", "Quito", "Perth"];

/** Some fields, and a ttl: none, a short one, a long one, never, or one that means nothing. */
function session(user: string, number: number): object {
  const id = `${user}-${String(number).padStart(3, "0")}`;
  const fields = {
    id,
    user,
    browser: BROWSERS[(number * 7 + user.length) % BROWSERS.length],
    city: CITIES[(number * 5 + user.charCodeAt(1)) % CITIES.length],
    clicks: (number * number * 31 + user.charCodeAt(2) * 17) % 400,
    cart: number % 3 === 0 ? { items: number % 9, total: (number * 137) % 5000 } : undefined,
  };
  switch (number % 10) {
    case 0:
    case 1:
    case 2:
    case 3:
      return fields;
    case 4:
    case 5:
      return { ...fields, ttl: 30 + ((number * 53 + user.charCodeAt(3) * 7) % 600) };
    case 6:
    case 7:
      return { ...fields, ttl: 1800 * (1 + (number % 40)) };
    case 8:
      return { ...fields, ttl: -1 };
    default:
      return { ...fields, ttl: 86400 * (1 + (number % 30)) };
  }
}

/** Makes `sample/sessions`, and tells how much of it is done. */
export async function loadSample(progress: (part: number) => void): Promise<void> {
  await unlessThere(createDatabase("sample"));
  const partitionKey = { paths: ["/user"], kind: "Hash", version: 2 };
  // While time to live is off, also a ttl that cannot be read may be written.
  await unlessThere(createContainer("sample", { id: "sessions", partitionKey }));
  for (let at = 0; at < USERS; at++) {
    const user = `user${String(at + 1).padStart(2, "0")}`;
    const items = Array.from({ length: EACH }, (_, number) => session(user, number));
    if (at % 4 === 0) items[EACH - 1] = { ...items[EACH - 1], ttl: "a while" };
    await ask("/dbs/sample/colls/sessions/docs", {
      verb: "POST",
      headers: {
        "x-ms-cosmos-is-batch-request": "true",
        "x-ms-cosmos-batch-atomic": "true",
        "x-ms-documentdb-partitionkey": `[${quoted(user)}]`,
      },
      body: JSON.stringify(items.map((resourceBody) => ({ operationType: "Upsert", resourceBody }))),
    });
    progress((at + 1) / USERS);
  }
  const definition = await askFor<object>("/dbs/sample/colls/sessions");
  await ask("/dbs/sample/colls/sessions", {
    verb: "PUT",
    headers: { "x-dayfly-confirm-expiry": "true" },
    body: JSON.stringify({ ...definition, defaultTtl: DEFAULT_TTL }),
  });
  await reload();
}

async function unlessThere(made: Promise<void>): Promise<void> {
  try {
    await made;
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 409) throw error;
  }
}
