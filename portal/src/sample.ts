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
function session(user: number, number: number): object {
  const name = userName(user);
  const mixed = (number * 7919 + user * 104729) % 9973;
  const fields = {
    id: `${name}-${String(number).padStart(3, "0")}`,
    user: name,
    browser: BROWSERS[mixed % BROWSERS.length],
    city: CITIES[(user * 3 + (number >> 3)) % CITIES.length],
    clicks: mixed % 400,
    ...(number % 3 === 0 ? { cart: { items: 1 + (mixed % 9), total: (mixed * 137) % 5000 } } : {}),
  };
  if (number === EACH - 1 && user % 4 === 1) return { ...fields, ttl: "a while" };
  switch (number % 10) {
    case 4:
    case 5:
      return { ...fields, ttl: 30 + (mixed % 900) };
    case 6:
    case 7:
      return { ...fields, ttl: 600 + 20 * (mixed % 4000) };
    case 8:
      return { ...fields, ttl: -1 };
    case 9:
      return { ...fields, ttl: 86400 + 600 * (mixed % 4000) };
    default:
      return fields;
  }
}

const userName = (user: number) => `user${String(user).padStart(2, "0")}`;

/** Makes `sample/sessions`, and tells how much of it is done. */
export async function loadSample(progress: (part: number) => void): Promise<void> {
  await unlessThere(createDatabase("sample"));
  const partitionKey = { paths: ["/user"], kind: "Hash", version: 2 };
  // While time to live is off, also a ttl that cannot be read may be written.
  await unlessThere(createContainer("sample", { id: "sessions", partitionKey }));
  for (let user = 1; user <= USERS; user++) {
    const items = Array.from({ length: EACH }, (_, number) => session(user, number));
    await ask("/dbs/sample/colls/sessions/docs", {
      verb: "POST",
      headers: {
        "x-ms-cosmos-is-batch-request": "true",
        "x-ms-cosmos-batch-atomic": "true",
        "x-ms-documentdb-partitionkey": `[${quoted(userName(user))}]`,
      },
      body: JSON.stringify(items.map((resourceBody) => ({ operationType: "Upsert", resourceBody }))),
    });
    progress(user / USERS);
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
