// Where in the page we are: everything has an address, behind the # of the page's own.

import { computed, signal } from "@preact/signals";

export interface Place {
  path: string[];
  params: URLSearchParams;
}

function parse(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  const names = path.split("/").filter((part) => part !== "");
  return { path: names.map(decoded), params: new URLSearchParams(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const here = signal<Place>(parse(location.hash));
addEventListener("hashchange", () => (here.value = parse(location.hash)));

export type Params = Record<string, string | number | null | undefined>;

/** The address of a place. */
export function address(path: readonly string[], params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return "#/" + path.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

export function go(path: readonly string[], params: Params = {}): void {
  location.hash = address(path, params);
  // At once: what is asked next is asked of that place.
  here.value = parse(location.hash);
}

/** Changes parameters of this address, without a step back to it. */
export function set(params: Params): void {
  const next: Params = { ...Object.fromEntries(here.peek().params), ...params };
  history.replaceState(history.state, "", address(here.peek().path, next));
  here.value = parse(location.hash);
}

export const TABS = ["items", "query", "ttl", "throughput", "feed"] as const;
export type Tab = (typeof TABS)[number];

export interface Spot {
  database: string;
  container: string;
}

/** The container that is looked at, if one is. */
export const spot = computed<Spot | null>(() => {
  const [kind, database, container] = here.value.path;
  return kind === "c" && database && container ? { database, container } : null;
});

export function tabOf(place: Place): Tab {
  const tab = place.path[3] as Tab;
  return TABS.includes(tab) ? tab : "items";
}

/** Below which address the REST API has a container. */
export function rest({ database, container }: Spot): string {
  return `/dbs/${encodeURIComponent(database)}/colls/${encodeURIComponent(container)}`;
}

/** Below which address the admin API has it. */
export function figures({ database, container }: Spot): string {
  return `/_admin/v1/containers/${encodeURIComponent(database)}/${encodeURIComponent(container)}`;
}
