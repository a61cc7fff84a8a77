// The rows of the items' screen: pages of them, their columns, and which are chosen.

import { ask } from "./api";
import { cut, Json } from "./json";
import type { Pending } from "./live";
import { figures, type Spot } from "./place";
import { steps } from "./item-calls";

export interface Row {
  id: string;
  partitionKey: string;
  /** The item as it is written in the page: nothing of it has become a value. */
  json: Json;
  ts: number;
  ttl: number | null;
  expiresAt: number | null;
  class: "inherit" | "explicit" | "never" | "uninterpretable";
  ignored: boolean;
}

export interface Page {
  now: number;
  defaultTtl: number | null;
  pending: Pending | null;
  items: Row[];
  continuation: string | null;
}

export type Order = "key" | "expiry";

export interface View {
  order: Order;
  within: number | null;
  after: string | null;
}

export const ROWS = 40;
const EMPTY_PAGES = 20;

/** A page of items; those that turn out empty are stepped over. */
export async function page(at: Spot, view: View, abort: AbortSignal): Promise<Page> {
  let after = view.after;
  for (let turn = 0; ; turn++) {
    const query = new URLSearchParams({ order: view.order, limit: String(ROWS) });
    if (view.order === "expiry" && view.within !== null) query.set("within", String(view.within));
    if (after) query.set("continuation", after);
    const told = pageOf((await ask(`${figures(at)}/items?${query}`, { abort })).text);
    after = told.continuation;
    if (told.items.length > 0 || after === null || turn >= EMPTY_PAGES) return told;
  }
}

/** The figures of a page as values, its items as texts. */
function pageOf(text: string): Page {
  const json = new Json(text);
  const told = JSON.parse(text) as Page;
  for (const [n, row] of json.elements(json.member("items")).entries()) {
    told.items[n]!.json = json.within(json.member("item", row)!);
  }
  return told;
}

export const rowKey = (row: { id: string; partitionKey: string }) => `${row.partitionKey}\n${row.id}`;

/** A partition key as it is shown: without its brackets. */
export function keyShown(partitionKey: string): string {
  if (partitionKey === "[{}]") return "undefined";
  return cut(partitionKey.slice(1, -1), 80);
}

const CELL = 60;

/** What stands at a path in an item, cut for a cell. */
export function cell(json: Json, path: string): string {
  const node = json.at(steps(path));
  if (!node) return "";
  const string = json.string(node);
  return cut(string ?? json.raw(node), CELL);
}

/** The fields that are in the column of the key already. */
export function keyFields(paths: readonly string[]): string[] {
  return paths.filter((path) => !path.slice(1).includes("/")).map((path) => path.slice(1));
}

const HIDDEN = /^(id|ttl|_rid|_self|_etag|_attachments|_ts)$/;
export const FIELDS_MAX = 6;

/** Names of fields at the top of these items, the most frequent first. */
export function fields(rows: readonly Row[], without: readonly string[]): string[] {
  const seen = new Map<string, number>();
  for (const row of rows) {
    const { root } = row.json;
    if (root.kind !== "object") continue;
    for (const { name, value } of root.members) {
      if (HIDDEN.test(name) || without.includes(name)) continue;
      const weight = value.kind === "object" || value.kind === "array" ? 0.5 : 1;
      seen.set(name, (seen.get(name) ?? 0) + weight);
    }
  }
  const paths = [...seen].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  return paths.slice(0, 40).map((name) => (/^[\p{L}\p{N}_$-]+$/u.test(name) ? name : JSON.stringify(name)));
}

const PLACE = "dayfly.columns.";

/** The fields that somebody chose for a container, if somebody did. */
export function chosenFields(at: Spot): string[] | null {
  try {
    const told: unknown = JSON.parse(localStorage.getItem(`${PLACE}${at.database}/${at.container}`) ?? "null");
    return Array.isArray(told) ? told.filter((of) => typeof of === "string").slice(0, FIELDS_MAX) : null;
  } catch {
    return null;
  }
}

export function chooseFields(at: Spot, fields: string[] | null): void {
  const name = `${PLACE}${at.database}/${at.container}`;
  try {
    if (fields) localStorage.setItem(name, JSON.stringify(fields));
    else localStorage.removeItem(name);
  } catch {
    // The browser keeps nothing: the choice is good for this page.
  }
}
