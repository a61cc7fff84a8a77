// The server's clock, as well as it can be known from here, and the one timer of the page.
//
// The browser's own clock may be wrong by hours, so it is not asked. What counts is how much time
// passes here, and what the server said. A second that the server names holds at some moment between
// question and answer, so each answer bounds how far its clock is ahead of ours; all together bound
// it better. Of what is possible, the least is taken: a countdown here never ends too early.

import { signal } from "@preact/signals";

/** The server's second, going on by itself. 0 until the server was asked. */
export const second = signal(0);

/** Goes up by one each second, also while the server's clock stands still. */
export const beat = signal(0);

/** Goes up when the server's clock was moved: what is on the screen is of another time. */
export const moves = signal(0);

export interface ClockState {
  frozen: boolean;
  held: boolean;
  offsetSeconds: number;
  behindSeconds: number;
  purgeHeld: string | null;
}

export const clockState = signal<ClockState>({
  frozen: false,
  held: false,
  offsetSeconds: 0,
  behindSeconds: 0,
  purgeHeld: null,
});

// How far the server's clock is ahead of ours, in milliseconds: at least, and less than.
let least = -Infinity;
let most = Infinity;
let sampledAt = 0;
const DRIFT = 1 / 5000;

/** The server said `now` in an answer to a question of ours. */
export function sample(now: number, asked: number, answered: number): void {
  if (clockState.peek().frozen) {
    place(now);
    return;
  }
  const low = now * 1000 - answered;
  const high = now * 1000 + 1000 - asked;
  const drift = (answered - sampledAt) * DRIFT;
  sampledAt = answered;
  const [a, b] = [Math.max(least - drift, low), Math.min(most + drift, high)];
  const fits = a <= b;
  const known = Number.isFinite(least);
  [least, most] = fits ? [a, b] : [low, high];
  if (!fits && known) moves.value++;
  place(Math.floor((answered + least) / 1000), !fits || !known);
}

function place(now: number, jumped = now !== second.peek()): void {
  if (jumped && second.peek() !== 0 && Math.abs(now - second.peek()) > 1) moves.value++;
  if (jumped || now > second.peek()) second.value = now;
}

/** How the clock stands, from the call that tells it. */
export function learn(state: ClockState & { now: number }, asked: number, answered: number): void {
  const before = clockState.peek();
  const { frozen, held, offsetSeconds, behindSeconds, purgeHeld } = state;
  if (JSON.stringify(before) !== JSON.stringify({ frozen, held, offsetSeconds, behindSeconds, purgeHeld })) {
    clockState.value = { frozen, held, offsetSeconds, behindSeconds, purgeHeld };
  }
  if (before.frozen !== frozen) [least, most] = [-Infinity, Infinity];
  sample(state.now, asked, answered);
}

/** Whether a second that the server named in passing fits what we know. */
export function fits(now: number, asked: number, answered: number): boolean {
  if (second.peek() === 0) return true;
  if (clockState.peek().frozen) return now === second.peek();
  const slack = 1500;
  return now * 1000 - answered <= most + slack && now * 1000 + 1000 - asked >= least - slack;
}

function tick(): void {
  const { frozen } = clockState.peek();
  let wait = 1000;
  if (!frozen && Number.isFinite(least)) {
    const server = performance.now() + least;
    const now = Math.floor(server / 1000);
    if (now > second.peek()) second.value = now;
    wait = 1000 - (server % 1000) + 1;
  }
  beat.value++;
  setTimeout(tick, Math.max(wait, 50));
}

/** Starts the one timer. */
export function start(): void {
  tick();
}

/** Waits for a number of beats, at least one. */
export function beats(number: number, abort?: AbortSignal): Promise<void> {
  const until = beat.peek() + Math.max(1, number);
  return new Promise((resolve, reject) => {
    const stop = beat.subscribe((now) => {
      if (now < until && !abort?.aborted) return;
      queueMicrotask(() => stop());
      if (abort?.aborted) reject(abort.reason);
      else resolve();
    });
  });
}
