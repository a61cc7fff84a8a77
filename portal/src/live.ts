// What is known of the server as it goes on: its containers with their figures, one record a second,
// and when something on the screen has to be asked for again.

import { batch, computed, effect, signal } from "@preact/signals";
import { ask, type Answer, askFor, back, clockDoubt, isAbort, left, lost, needsKey, open, returns } from "./api";
import { beat, beats, clockState, learn, moves, sample, type ClockState } from "./clock";
import { admin, refresh } from "./session";
import { figures, spot, type Spot } from "./place";

export interface Count {
  items: number;
  bytes: number;
}

export interface Pending {
  defaultTtl: number | null;
  at: number;
}

export interface Purge {
  state: "idle" | "running" | "paused" | "held";
  reason: string | null;
  itemsPerSecond: number;
  purgedItems: number;
}

export interface Container {
  database: string;
  container: string;
  rid: string;
  partitionKeyPaths: string[];
  defaultTtl: number | null;
  ttlPropertyPath: string | null;
  pending: Pending | null;
  live: Count;
  never: Count;
  uninterpretable: number;
  backlog: Count & { oldestExpiredAt: number | null };
  purge: Purge;
  lagSeconds: number;
  isLagging: boolean;
  indexProgress: number;
}

export interface Second {
  now: number;
  frozen: boolean;
  requests: number;
  charge: number;
  errors: number;
  expired: number;
  purged: number;
}

/** All databases, also those without a container. */
export const databases = signal<string[]>([]);
export const containers = signal<Container[]>([]);
/** How many containers the page keeps, of a server that has more. */
export const KEPT = 10_000;
/** Whether there are more containers than that. */
export const more = signal(false);
/** Whether the containers were asked for at least once. */
export const known = signal(false);
/** The last record of the server's stream. */
export const lastSecond = signal<Second | null>(null);

/** Goes up when what is on the screen may be of another time or another default. */
export const epoch = computed(() => moves.value + returns.value + changes.value);
/** Goes up when we, or others, changed the default or the number of containers. */
export const changes = signal(0);

/** What was last told of the container that is looked at; `of` is null, if there is none. */
const looked = signal<{ at: Spot; of: Container | null } | null>(null);

function isOf(at: Spot, of: Spot): boolean {
  return of.database === at.database && of.container === at.container;
}

/** The container that is looked at, as far as it is known. */
export const current = computed<Container | null>(() => {
  const at = spot.value;
  if (!at) return null;
  if (looked.value && isOf(at, looked.value.at)) return looked.value.of;
  return containers.value.find((of) => isOf(at, of)) ?? null;
});

/** Whether the server said that there is no such container as the one that is looked at. */
export const vanished = computed(() => {
  const at = spot.value;
  return at !== null && looked.value !== null && isOf(at, looked.value.at) && looked.value.of === null;
});

/** How many are asked for at once. */
const AT_ONCE = 1000;

interface Page {
  now: number;
  containers: Container[];
  continuation: string | null;
}

/** Does it once at a time: who comes meanwhile waits for what is under way. */
function single(what: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= what().finally(() => (running = undefined)));
}

const reloadDatabases = single(loadDatabases);
const reloadContainers = single(load);
const reloadServer = single(refresh);
const pollCurrent = single(loadCurrent);

/** Asks for all containers, and for databases that have none. */
export async function reload(): Promise<void> {
  await Promise.all([reloadDatabases(), reloadContainers(), loadCurrent()]);
}

/** Asks how the container stands that is looked at: alone, however many others there are. */
async function loadCurrent(): Promise<void> {
  const at = spot.peek();
  if (!at) return;
  const answer = await ask(figures(at), { watch: true, takes: [404] });
  const now = spot.peek();
  if (!now || !isOf(now, at)) return;
  const of = answer.status === 404 ? null : (JSON.parse(answer.text) as Container);
  const before = fingerprint();
  batch(() => {
    looked.value = { at, of };
    const row = containers.peek().findIndex((known) => isOf(at, known));
    // The tree goes with it; what comes and goes there does so with all the others.
    if (of && row >= 0) containers.value = containers.peek().with(row, of);
    if (known.peek() && fingerprint() !== before) changes.value++;
  });
}

async function loadDatabases(): Promise<void> {
  const names: string[] = [];
  let after: string | null = null;
  do {
    const headers: Record<string, string> = { "x-ms-max-item-count": String(AT_ONCE) };
    if (after !== null) headers["x-ms-continuation"] = after;
    const answer: Answer = await ask("/dbs", { headers, watch: true });
    const { Databases } = JSON.parse(answer.text) as { Databases: { id: string }[] };
    names.push(...Databases.map((database) => database.id));
    after = answer.headers.get("x-ms-continuation");
  } while (after !== null && names.length < KEPT);
  if (names.join("/") !== databases.peek().join("/")) databases.value = names;
}

async function load(): Promise<void> {
  const all: Container[] = [];
  let after: string | null = null;
  do {
    const place: string = after === null ? "" : `&continuation=${encodeURIComponent(after)}`;
    const page: Page = await askFor<Page>(`${admin}containers?limit=${AT_ONCE}${place}`);
    all.push(...page.containers);
    after = page.continuation;
  } while (after !== null && all.length < KEPT);
  const before = fingerprint();
  batch(() => {
    containers.value = all;
    more.value = after !== null;
    if (known.peek() && fingerprint() !== before) changes.value++;
    known.value = true;
  });
  const at = spot.peek();
  if (at && vanished.peek() && all.some((of) => isOf(at, of))) quietly(loadCurrent);
}

/** What, when it changes, makes other figures stale: the policy of the container that is looked at. */
function fingerprint(): string {
  const at = current.peek();
  return at ? JSON.stringify([at.rid, at.defaultTtl, at.pending]) : "";
}

/** Reads the clock, and believes it. */
export async function readClock(): Promise<void> {
  const asked = performance.now();
  const state = await askFor<ClockState & { now: number }>(`${admin}clock`, { watch: true });
  learn(state, asked, performance.now());
}

/** Moves the test clock; everything on the screen follows. */
export async function moveClock(step: Record<string, number | boolean>): Promise<void> {
  const asked = performance.now();
  const state = JSON.parse(
    (await ask(`${admin}clock`, { verb: "POST", body: JSON.stringify(step) })).text,
  ) as ClockState & { now: number };
  batch(() => {
    learn(state, asked, performance.now());
    moves.value++;
  });
  await reload();
}

/** Follows the server until the page is closed. */
export function follow(): void {
  void stream();
  effect(() => {
    const now = beat.value;
    // So that the server has as little to do for many containers as for a few.
    const every = 3 + Math.floor(containers.peek().length / 20);
    if (lost.peek()) void knock();
    if (lost.peek() || needsKey.peek()) return;
    if (now % every === 0) quietly(reloadContainers);
    if (now % (vanished.peek() ? 15 : 3) === 0) quietly(pollCurrent);
    if (now % 60 === 0) quietly(reloadServer);
    if (now % 20 === 0) quietly(reloadDatabases);
  });
  // Where somebody goes to is asked for at once: it may be newer than the list of all.
  const name = computed(() => spot.value && `${spot.value.database}/${spot.value.container}`);
  effect(() => {
    if (name.value !== null) quietly(loadCurrent);
  });
  effect(() => {
    if (clockDoubt.value > 0) quietly(readClock);
  });
  effect(() => {
    if (epoch.value > 0) quietly(reload);
  });
  // It may be another server that came back.
  effect(() => {
    if (returns.value > 0) quietly(reloadServer);
  });
}

function quietly(what: () => Promise<void>): void {
  what().catch(() => undefined);
}

/** Asks whether the server is there again. */
async function knock(): Promise<void> {
  try {
    const answer = await fetch("/alive", { cache: "no-store", credentials: "omit" });
    if (answer.ok) back();
  } catch {
    // Not yet.
  }
}

async function stream(): Promise<void> {
  for (;;) {
    const listening = new AbortController();
    const stop = left.subscribe((isOut) => isOut && listening.abort());
    try {
      const body = await open(`${admin}events`, listening.signal);
      if (body) await lines(body);
    } catch (error) {
      if (!isAbort(error) && !left.peek()) lost.value = true;
    } finally {
      stop();
    }
    await beats(1);
    // Whatever ended the stream, this call waits until the server is there, and we are in.
    await readClock().catch(() => undefined);
  }
}

async function lines(body: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
      heard(JSON.parse(rest.slice(0, end)) as Second);
      rest = rest.slice(end + 1);
    }
  }
}

function heard(told: Second): void {
  const now = performance.now();
  batch(() => {
    back();
    lastSecond.value = told;
    if (told.frozen !== clockState.peek().frozen) quietly(readClock);
    // When it left the server is not known; it was not long ago.
    else sample(told.now, now - 2000, now);
  });
}
