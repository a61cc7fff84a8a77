// What was written and is not saved yet, by the place where it was written. A screen that goes
// away leaves its text here and finds it when it comes back; a page that goes away asks first.

import { signal } from "@preact/signals";
import type { Spot } from "./place";

const texts = new Map<string, unknown>();

/** Places where something stands that was neither saved nor run. */
export const unsaved = signal<ReadonlySet<string>>(new Set());

/** The name of a place: what is written there in this container. */
export function placeOf(at: Spot, what: string): string {
  return `${at.database}/${at.container}\n${what}`;
}

/** Keeps what is written in a place; null forgets it. */
export function keep(place: string, text: unknown, isUnsaved = text !== null): void {
  if (text === null) texts.delete(place);
  else texts.set(place, text);
  if (isUnsaved === unsaved.peek().has(place)) return;
  const next = new Set(unsaved.peek());
  if (isUnsaved) next.add(place);
  else next.delete(place);
  unsaved.value = next;
}

/** What was kept of a place. */
export function kept<T>(place: string): T | undefined {
  return texts.get(place) as T | undefined;
}

addEventListener("beforeunload", (event) => {
  if (unsaved.peek().size > 0) event.preventDefault();
});
