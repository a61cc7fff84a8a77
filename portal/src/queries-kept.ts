// Queries that were asked, and those with a name, kept in the browser.

import { signal } from "@preact/signals";
import type { Asked } from "./query-calls";

export interface Named extends Asked {
  name: string;
}

interface Kept {
  last: Asked[];
  named: Named[];
}

const PLACE = "dayfly.queries";
const LAST = 50;

export const kept = signal<Kept>(load());

function load(): Kept {
  try {
    const told = JSON.parse(localStorage.getItem(PLACE) ?? "null") as Partial<Kept> | null;
    return { last: told?.last ?? [], named: told?.named ?? [] };
  } catch {
    return { last: [], named: [] };
  }
}

function keep(next: Kept): void {
  kept.value = next;
  try {
    localStorage.setItem(PLACE, JSON.stringify(next));
  } catch {
    // The browser keeps nothing, or no more: they are good for this page.
  }
}

const same = (a: Asked, b: Asked) => JSON.stringify([a.query, a.parameters]) === JSON.stringify([b.query, b.parameters]);

export function remember(asked: Asked): void {
  const { last, named } = kept.peek();
  keep({ last: [asked, ...last.filter((of) => !same(of, asked))].slice(0, LAST), named });
}

export function name(asked: Asked, name: string): void {
  const { last, named } = kept.peek();
  const others = named.filter((of) => of.name !== name);
  keep({ last, named: [...others, { ...asked, name }].sort((a, b) => (a.name < b.name ? -1 : 1)) });
}

export function forget(name: string): void {
  const { last, named } = kept.peek();
  keep({ last, named: named.filter((of) => of.name !== name) });
}

export function forgetLast(): void {
  keep({ last: [], named: kept.peek().named });
}
