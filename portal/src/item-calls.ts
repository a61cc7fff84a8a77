// Reading and writing one item: as text, with its etag.

import { ask, type Answer } from "./api";
import { ascii, compact, isSystem, Json, withMember } from "./json";
import { figures, rest, type Spot } from "./place";

/** Which item: its id, and its partition key as the header wants it. */
export interface Ref {
  id: string;
  partitionKey: string;
  /** Its address by RID, for ids that no address can have. */
  self?: string | undefined;
}

/** An item as the server gave it. */
export interface Stored extends Ref {
  text: string;
  etag: string;
  /** Whether the last write of it had a ttl that counts for nothing. */
  ignored: boolean;
}

export interface Explained {
  state: "live" | "expired" | "absent";
  class?: "inherit" | "explicit" | "never" | "uninterpretable";
  ts?: number;
  ttl?: number | null;
  defaultTtl: number | null;
  effectiveTtl?: number | null;
  expiresAt?: number | null;
  reason: string;
}

/** What became of a write: `over` is the etag of the version that it was written over. */
export type Outcome =
  | { kind: "saved"; item: Stored; over: string }
  | { kind: "changed"; now: Stored }
  | { kind: "gone" };

function path(at: Spot, ref: Ref): string {
  if (/^\.\.?$/.test(ref.id) && ref.self) return "/" + ref.self;
  return `${rest(at)}/docs/${encodeURIComponent(ref.id.toWellFormed())}`;
}

function headers(ref: Ref, more: Record<string, string> = {}): Record<string, string> {
  return { "x-ms-documentdb-partitionkey": ascii(ref.partitionKey), ...more };
}

function stored(answer: Answer, partitionKey: string): Stored {
  const json = new Json(answer.text);
  return {
    id: json.string(json.member("id")) ?? "",
    partitionKey,
    self: json.string(json.member("_self")),
    text: answer.text,
    etag: json.string(json.member("_etag")) ?? "",
    ignored: answer.headers.get("x-dayfly-ttl-ignored") === "true",
  };
}

/** The item as it is now; null, if it is gone. */
export async function readItem(at: Spot, ref: Ref, abort?: AbortSignal): Promise<Stored | null> {
  const answer = await ask(path(at, ref), { headers: headers(ref), takes: [404], abort });
  return answer.status === 404 ? null : stored(answer, ref.partitionKey);
}

/** Saves a text over the item, if it still has the etag. */
export async function saveItem(at: Spot, ref: Ref, text: string, etag: string): Promise<Outcome> {
  const answer = await ask(path(at, ref), {
    verb: "PUT",
    headers: headers(ref, { "if-match": etag, "content-type": "application/json" }),
    body: text,
    takes: [404, 412],
  });
  if (answer.status === 404) return { kind: "gone" };
  if (answer.status !== 412) return { kind: "saved", item: stored(answer, ref.partitionKey), over: etag };
  const now = await readItem(at, ref);
  return now ? { kind: "changed", now } : { kind: "gone" };
}

export async function createItem(at: Spot, text: string, paths: readonly string[]): Promise<Stored> {
  const partitionKey = keyOf(new Json(text), paths);
  const answer = await ask(`${rest(at)}/docs`, {
    verb: "POST",
    headers: { "x-ms-documentdb-partitionkey": partitionKey, "content-type": "application/json" },
    body: text,
  });
  return stored(answer, partitionKey);
}

/** Deletes the item that has the etag. */
export async function deleteItem(at: Spot, ref: Ref, etag: string): Promise<"done" | "changed"> {
  const answer = await ask(path(at, ref), {
    verb: "DELETE",
    headers: headers(ref, { "if-match": etag }),
    takes: [404, 412],
  });
  return answer.status === 412 ? "changed" : "done";
}

const ATTEMPTS = 5;

/**
 * Writes a version of an item anew, with another ttl or with none: its life begins again. `keep`
 * leaves the ttl as it is. If others have changed it, theirs is written anew, as long as
 * `follows` allows that.
 */
export async function rewrite(
  at: Spot,
  known: Stored,
  ttl: number | "keep" | "none",
  follows: () => boolean = () => true,
): Promise<Outcome> {
  let item = known;
  for (let attempt = 0; ; attempt++) {
    const own = withoutSystem(item.text);
    const text = ttl === "keep" ? own : withMember(own, "ttl", ttl === "none" ? undefined : String(ttl));
    const outcome = await saveItem(at, item, text, item.etag);
    if (outcome.kind !== "changed" || !follows()) return outcome;
    if (attempt >= ATTEMPTS) throw new Error("Others change this item all the time.");
    item = outcome.now;
  }
}

export async function explain(at: Spot, ref: Ref, abort?: AbortSignal): Promise<Explained> {
  const query = new URLSearchParams({ id: ref.id, partitionKey: ref.partitionKey });
  const answer = await ask(`${figures(at)}/ttl/explain?${query}`, { abort, watch: true });
  return JSON.parse(answer.text) as Explained;
}

/** The item's own properties, token for token. */
export function withoutSystem(text: string): string {
  return compact(new Json(text), (name) => !isSystem(name));
}

/** The partition key of an item, as the header wants it. */
export function keyOf(json: Json, paths: readonly string[]): string {
  const values = paths.map((path) => {
    const node = json.at(steps(path));
    return node ? ascii(json.raw(node)) : "{}";
  });
  return `[${values.join(",")}]`;
}

/** The names of a path such as /a/b or /"a b". */
export function steps(path: string): string[] {
  const parts = path.match(/"(?:[^"\\]|\\.)*"|[^/]+/g) ?? [];
  return parts.map((part) => (part.startsWith('"') ? (JSON.parse(part) as string) : part));
}
