// Asking the server. What can be waited for is waited for here: a busy server (429, 449, 503), one
// that is gone, and a session that has ended. Who asks sees an answer, or a refusal that is final.

import { signal } from "@preact/signals";
import { beats, fits } from "./clock";

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/** The server refused. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly substatus: number,
    readonly code: string,
    message: string,
    readonly activityId: string,
  ) {
    super(message);
  }
}

/** The server was gone while it was asked for a change; nobody knows whether it was made. */
export class Lost extends Error {}

export interface Ask {
  verb?: string;
  headers?: Record<string, string>;
  body?: string;
  abort?: AbortSignal | undefined;
  /** Refusals that the caller wants as answers. */
  takes?: readonly number[];
  /** Whether it is asked again and again: then the request log does not tell of it. */
  watch?: boolean;
}

/** Whether the server does not answer at all. */
export const lost = signal(false);
/** Goes up when the server answers again. */
export const returns = signal(0);
/** What is being waited for, because the server said so. */
export const waiting = signal<{ status: number; seconds: number } | null>(null);
/** Whether a key is asked for; whoever has one sets it to false by logging in. */
export const needsKey = signal(false);
/** Whether somebody logged out: then nothing is asked until somebody logs in. */
export const left = signal(false);
/** Something that the clock of an answer does not fit; the frame then asks for the clock. */
export const clockDoubt = signal(0);

let token = "";
let renew: (() => Promise<boolean>) | undefined;

export function useToken(given: string): void {
  token = given;
  if (given) left.value = needsKey.value = false;
}

/** How to come to a new session without asking anybody. */
export function renewBy(how: () => Promise<boolean>): void {
  renew = how;
}

const BUSY = [429, 449, 503];
const PATIENCE = 60;

/** Asks, with the session's token. */
export async function ask(path: string, how: Ask = {}): Promise<Answer> {
  const verb = how.verb ?? "GET";
  const changes = verb !== "GET" && !path.endsWith("query/explain") && !isQuery(how);
  for (let attempt = 0; ; attempt++) {
    await renewing;
    await until(() => !needsKey.peek(), how.abort);
    const used = token;
    const asked = performance.now();
    let answer: Answer;
    try {
      answer = await send(path, verb, how, used);
    } catch (error) {
      if (how.abort?.aborted) throw error;
      lost.value = true;
      if (changes) {
        throw new Lost("The server does not answer, so it is not known whether this was done.");
      }
      await until(() => !lost.peek(), how.abort);
      continue;
    }
    if (lost.peek()) back();
    checkClock(path, answer, asked);
    if (how.takes?.includes(answer.status)) return answer;
    const again = await handled(answer, attempt, used, changes, how.abort);
    if (again) continue;
    if (answer.status < 400) return answer;
    throw refusal(answer);
  }
}

/** Asks for JSON whose numbers may be rounded: figures, not items. */
export async function askFor<T>(path: string, how: Ask = {}): Promise<T> {
  return JSON.parse((await ask(path, how)).text) as T;
}

function isQuery(how: Ask): boolean {
  return how.headers?.["x-ms-documentdb-isquery"] === "true";
}

async function send(path: string, verb: string, how: Ask, used: string): Promise<Answer> {
  const headers = new Headers(how.headers);
  headers.set("x-ms-version", "2020-07-15");
  if (used) headers.set("authorization", `Bearer ${used}`);
  if (how.watch) headers.set("x-dayfly-watch", "true");
  const response = await fetch(path, {
    method: verb,
    headers,
    body: how.body ?? null,
    signal: how.abort ?? null,
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Opens an answer that comes bit by bit. */
export async function open(path: string, abort: AbortSignal): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null> {
  const response = await fetch(path, {
    headers: { authorization: `Bearer ${token}` },
    cache: "no-store",
    credentials: "omit",
    signal: abort,
  });
  return response.ok ? response.body : null;
}

/** Waits for what can be waited for. Whether to ask again. */
async function handled(
  answer: Answer,
  attempt: number,
  used: string,
  changes: boolean,
  abort: AbortSignal | undefined,
): Promise<boolean> {
  if (answer.status === 401) {
    if (token === used) await login();
    return true;
  }
  // After a 503 nobody knows whether a change was made, so it is for people to decide.
  const mayRepeat = BUSY.includes(answer.status) && !(changes && answer.status === 503);
  if (!mayRepeat || attempt >= PATIENCE) return false;
  const asked = Number(answer.headers.get("x-ms-retry-after-ms") ?? 1000);
  const seconds = Math.max(1, Math.ceil(asked / 1000));
  waiting.value = { status: answer.status, seconds };
  try {
    // The next beat may come at once: so many whole seconds are one beat more.
    await beats(seconds + 1, abort);
  } finally {
    waiting.value = null;
  }
  return true;
}

let renewing: Promise<void> | undefined;

/** A new session for all who were refused; if there is none without a key, one is asked for. */
function login(): Promise<void> {
  renewing ??= tryToRenew().finally(() => (renewing = undefined));
  return renewing;
}

async function tryToRenew(): Promise<void> {
  token = "";
  if (left.peek() || !(await renew?.())) needsKey.value = true;
}

/** Something was heard of the server. */
export function back(): void {
  if (!lost.peek()) return;
  lost.value = false;
  returns.value++;
}

async function until(holds: () => boolean, abort?: AbortSignal): Promise<void> {
  while (!holds()) await beats(1, abort);
}

function checkClock(path: string, answer: Answer, asked: number): void {
  const date = Date.parse(answer.headers.get("date") ?? "");
  // Refusals at the door may have a date without having asked the store.
  if (!path.startsWith("/dbs") || answer.status >= 400 || Number.isNaN(date)) return;
  if (!fits(date / 1000, asked, performance.now())) clockDoubt.value++;
}

export function refusal(answer: Answer): Refusal {
  let code = String(answer.status);
  let message = answer.text;
  try {
    const told = JSON.parse(answer.text) as { code?: unknown; message?: unknown };
    if (typeof told.code === "string") code = told.code;
    if (typeof told.message === "string") message = told.message;
  } catch {
    // Not our text: shown as it is.
  }
  const activityId = answer.headers.get("x-ms-activity-id") ?? "";
  const substatus = Number(answer.headers.get("x-ms-substatus") ?? 0);
  message = message.replace(/\s*ActivityId: [0-9a-f-]{36}.*$/s, "").trim();
  return new Refusal(answer.status, substatus, code, message || `Status ${answer.status}`, activityId);
}

/** A failure in a sentence. */
export function sentence(error: unknown): string {
  if (error instanceof Refusal) {
    const sub = error.substatus ? `/${error.substatus}` : "";
    return `${error.message} (${error.status}${sub})`;
  }
  return error instanceof Error ? error.message : String(error);
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
