// Who we are. The token lives in this tab's sessionStorage, never in a cookie: no other page can
// send it.

import { signal } from "@preact/signals";
import { ask, askFor, left, needsKey, refusal, renewBy, useToken } from "./api";
import { emulatorKey } from "./known";

export interface Server {
  version: string;
  now: number;
  startedAt: number;
  uptimeSeconds: number;
  clock: { now: number; frozen: boolean; offsetSeconds: number; held: boolean; canMove: boolean };
  durability: "sync" | "relaxed";
  place: "memory" | "folder";
  emulator: boolean;
  readOnly: boolean;
  by: string;
  wellKnownKey: boolean;
  requestLog: boolean;
  ttlChangeDelaySeconds: number;
  ttlChangeGuardPercent: number | null;
  endpoints: { scheme: string; url: string }[];
  direct: boolean;
  certificate: { path: string; sha256: string; endsAt: number } | null;
}

interface Session {
  token: string;
  readOnly: boolean;
  by: string;
}

export const admin = "/_admin/v1/";
const PLACE = "dayfly.session";

/** What the server says of itself; null before the login. */
export const server = signal<Server | null>(null);
export const readOnly = signal(false);

function keep(session: Session): void {
  sessionStorage.setItem(PLACE, session.token);
  readOnly.value = session.readOnly;
  useToken(session.token);
}

/** Opens a session. False, if the server knows neither key nor code. */
async function open(body: { key: string } | { code: string }): Promise<boolean> {
  const response = await fetch(`${admin}session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    cache: "no-store",
    credentials: "omit",
  });
  const text = await response.text();
  if (response.status === 401) return false;
  if (!response.ok) throw refusal({ status: response.status, headers: response.headers, text });
  keep(JSON.parse(text) as Session);
  return true;
}

/** Logs in with a key that somebody typed. */
export async function logIn(key: string): Promise<boolean> {
  if (!(await open({ key }))) return false;
  await refresh();
  return true;
}

/**
 * Ends the session. What is asked meanwhile must not open another one, not even with the public
 * key. It is left also if the server cannot be told: then its end of it ends by itself.
 */
export async function logOut(): Promise<void> {
  left.value = true;
  try {
    await ask(`${admin}session`, { verb: "DELETE", takes: [401] });
  } finally {
    sessionStorage.removeItem(PLACE);
    useToken("");
    // Also if a session was opened just before.
    left.value = true;
    server.value = null;
    needsKey.value = true;
  }
}

/** Comes in without asking, if there is a way: a code, the last token, or the public key. */
export async function enter(): Promise<void> {
  renewBy(tryPublicKey);
  const code = /^#code=([A-Za-z0-9_-]+)$/.exec(location.hash)?.[1];
  const known = sessionStorage.getItem(PLACE);
  if (code) {
    history.replaceState(null, "", location.pathname + "#/");
    if (!(await open({ code })) && !(await tryPublicKey())) needsKey.value = true;
  } else if (known) {
    useToken(known);
  } else if (!(await tryPublicKey())) {
    needsKey.value = true;
  }
  // Waits for the key, if one is asked for.
  await refresh();
}

/** What the server says of itself, now. */
export async function refresh(): Promise<void> {
  const told = await askFor<Server>(`${admin}server`);
  // It was on its way when somebody logged out.
  if (left.peek()) return;
  readOnly.value = told.readOnly;
  server.value = told;
}

async function tryPublicKey(): Promise<boolean> {
  try {
    return await open({ key: emulatorKey });
  } catch {
    return false;
  }
}
