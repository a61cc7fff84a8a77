// Ctrl-K: finds containers and what can be done.

import { signal, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { containers, databases, moveClock } from "./live";
import { creation } from "./creation";
import { go, spot, TABS } from "./place";
import { readOnly, server } from "./session";
import { clockState } from "./clock";
import { say } from "./ui";
import { sentence } from "./api";
import { ttlBadge } from "./words";

export const palette = signal(false);

addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    palette.value = server.peek() !== null && !palette.peek();
  }
});

interface Entry {
  name: string;
  hint: string;
  act: () => void;
}

const TAB_NAMES = { items: "Items", query: "Query", ttl: "Time to live", throughput: "Throughput", feed: "Change feed" };
const SHOWN = 12;

function entries(): Entry[] {
  const list: Entry[] = [];
  const at = spot.peek();
  if (at) {
    for (const tab of TABS) {
      const path = ["c", at.database, at.container, tab];
      list.push({ name: TAB_NAMES[tab], hint: `of ${at.container}`, act: () => go(path) });
    }
  }
  list.push({ name: "Start page", hint: "", act: () => go([]) });
  list.push({ name: "Requests", hint: "the last 1,000", act: () => go(["requests"]) });
  if (!readOnly.peek()) {
    list.push({ name: "New database…", hint: "", act: () => (creation.value = { what: "database" }) });
    list.push({
      name: "New container…",
      hint: at ? `in ${at.database}` : "",
      act: () => (creation.value = { what: "container", database: at?.database }),
    });
    if (server.peek()?.clock.canMove) list.push(...clockEntries());
  }
  for (const of of containers.peek()) {
    list.push({
      name: `${of.database} / ${of.container}`,
      hint: `container · ${ttlBadge(of.defaultTtl)}`,
      act: () => go(["c", of.database, of.container]),
    });
  }
  for (const name of databases.peek()) {
    list.push({ name, hint: "database", act: () => go(["d", name]) });
  }
  return list;
}

function clockEntries(): Entry[] {
  const move = (step: Record<string, number | boolean>) => () =>
    void moveClock(step).catch((error: unknown) => say(sentence(error)));
  const steps: [string, Record<string, number | boolean>][] = [
    ["Clock: one minute ahead", { advanceSeconds: 60 }],
    ["Clock: one hour ahead", { advanceSeconds: 3600 }],
    ["Clock: one day ahead", { advanceSeconds: 86400 }],
    ["Clock: 90 days ahead", { advanceSeconds: 90 * 86400 }],
    [
      clockState.peek().frozen ? "Clock: let it run" : "Clock: freeze",
      { frozen: !clockState.peek().frozen },
    ],
  ];
  return steps.map(([name, step]) => ({ name, hint: "test clock", act: move(step) }));
}

/** Entries that have all the words, those that begin with them first. */
function found(all: Entry[], text: string): Entry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = all.filter((entry) => {
    const name = `${entry.name} ${entry.hint}`.toLowerCase();
    return words.every((word) => name.includes(word));
  });
  const first = words[0];
  if (first) {
    const rank = (entry: Entry) => (entry.name.toLowerCase().startsWith(first) ? 0 : 1);
    fits.sort((a, b) => rank(a) - rank(b));
  }
  return fits.slice(0, SHOWN);
}

export function Palette() {
  const text = useSignal("");
  const chosen = useSignal(0);
  const dialog = useRef<HTMLDialogElement>(null);
  // At once: people type on.
  useLayoutEffect(() => {
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>("[data-focus]")?.focus();
  }, []);
  const list = found(entries(), text.value);
  const at = Math.min(chosen.value, list.length - 1);
  const close = () => (palette.value = false);
  const act = (entry: Entry | undefined) => {
    close();
    entry?.act();
  };
  const keys = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      chosen.value = (at + step + list.length) % Math.max(1, list.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      act(list[at]);
    }
  };
  return (
    <dialog
      ref={dialog}
      class="dialog palette"
      aria-label="Find a container or an action"
      onCancel={close}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <input
        class="input"
        role="combobox"
        aria-label="Find"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={at >= 0 ? `palette-${at}` : undefined}
        placeholder="A container, a database, something to do"
        autocomplete="off"
        spellcheck={false}
        data-focus
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          chosen.value = 0;
        }}
        onKeyDown={keys}
      />
      <ul id="palette-list" role="listbox" aria-label="What was found">
        {list.map((entry, index) => (
          <li
            key={entry.name + entry.hint}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => act(entry)}
            onPointerMove={() => (chosen.value = index)}
          >
            <span>{entry.name}</span>
            <span class="soft">{entry.hint}</span>
          </li>
        ))}
        {list.length === 0 && <li class="soft">Nothing has these words.</li>}
      </ul>
    </dialog>
  );
}

