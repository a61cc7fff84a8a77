// The tree: databases, their containers, and of each how many items live, its default, and whether
// something lags.

import { useSignal } from "@preact/signals";
import { containers, databases, KEPT, known, more, type Container } from "./live";
import { creation } from "./creation";
import { address, here, spot } from "./place";
import { readOnly } from "./session";
import { Button, Icon } from "./ui";
import { count, duration, short, ttlBadge } from "./words";

/** Rows that are shown; what is beyond is found by its name. */
const ROWS = 60;

interface Branch {
  database: string;
  containers: Container[];
}

function branches(text: string): Branch[] {
  const word = text.trim().toLowerCase();
  const by = new Map<string, Container[]>(databases.value.map((name) => [name, []]));
  for (const of of containers.value) {
    const list = by.get(of.database);
    if (list) list.push(of);
    else by.set(of.database, [of]);
  }
  const all = [...by].map(([database, list]) => ({
    database,
    containers: list.toSorted((a, b) => (a.container < b.container ? -1 : 1)),
  }));
  all.sort((a, b) => (a.database < b.database ? -1 : 1));
  if (!word) return all;
  const has = (name: string) => name.toLowerCase().includes(word);
  return all.flatMap((branch) => {
    if (has(branch.database)) return [branch];
    const some = branch.containers.filter((of) => has(of.container));
    return some.length > 0 ? [{ ...branch, containers: some }] : [];
  });
}

export function Tree() {
  const text = useSignal("");
  const closed = useSignal<ReadonlySet<string>>(new Set());
  const all = branches(text.value);
  let left = ROWS;
  let hidden = 0;
  const shown = all.flatMap((branch) => {
    if (left <= 0) {
      hidden += 1 + branch.containers.length;
      return [];
    }
    const open = text.value !== "" || !closed.value.has(branch.database);
    const list = open ? branch.containers.slice(0, left - 1) : [];
    if (open) hidden += branch.containers.length - list.length;
    left -= 1 + list.length;
    return [{ ...branch, open, list }];
  });
  const toggle = (name: string) => {
    const next = new Set(closed.peek());
    if (!next.delete(name)) next.add(name);
    closed.value = next;
  };
  return (
    <div class="tree" onKeyDown={arrows}>
      <div class="tree-links">
        <a href={address([])} aria-current={here.value.path.length === 0 ? "page" : undefined}>
          <Icon name="home" /> Start
        </a>
        <a
          href={address(["requests"])}
          aria-current={here.value.path[0] === "requests" ? "page" : undefined}
        >
          <Icon name="list" /> Requests
        </a>
      </div>
      <div class="tree-head">
        <h2>Databases</h2>
        {!readOnly.value && (
          <Button
            kind="quiet"
            icon="plus"
            label="New database or container"
            onClick={() => (creation.value = { what: "container", database: spot.peek()?.database })}
          />
        )}
      </div>
      {(containers.value.length > 8 || text.value) && (
        <input
          class="input"
          type="search"
          aria-label="Filter the tree"
          placeholder="Filter"
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
      )}
      <ul>
        {shown.map((branch) => (
          <li key={branch.database}>
            <div class="tree-row">
              <button
                type="button"
                class="twig"
                aria-expanded={branch.open}
                aria-label={branch.database}
                onClick={() => toggle(branch.database)}
              >
                <Icon name={branch.open ? "down" : "right"} />
              </button>
              <a
                href={address(["d", branch.database])}
                aria-current={isDatabase(branch.database) ? "page" : undefined}
              >
                {branch.database}
              </a>
            </div>
            {branch.list.length > 0 && (
              <ul>
                {branch.list.map((of) => (
                  <Leaf of={of} key={of.rid} />
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
      {hidden > 0 && <p class="soft">{count(hidden)} more: type to filter.</p>}
      {more.value && <p class="soft">Only the first {count(KEPT)} containers are here.</p>}
      {known.value && databases.value.length === 0 && <p class="soft">No databases yet.</p>}
    </div>
  );
}

function isDatabase(name: string): boolean {
  const { path } = here.value;
  return path[0] === "d" && path[1] === name;
}

function Leaf({ of }: { of: Container }) {
  const at = spot.value;
  const isHere = at?.database === of.database && at.container === of.container;
  return (
    <li>
      <a
        class="leaf"
        href={address(["c", of.database, of.container])}
        aria-current={isHere ? "page" : undefined}
      >
        <span class="name">{of.container}</span>
        <State of={of} />
        <span class="num" title={`${count(of.live.items)} live items`}>
          {short(of.live.items)}
        </span>
        <TtlBadge of={of} />
      </a>
    </li>
  );
}

export function TtlBadge({ of }: { of: Pick<Container, "defaultTtl" | "pending"> }) {
  const kind = of.defaultTtl === null ? "off" : of.defaultTtl === -1 ? "none" : "on";
  const wait = of.pending ? `, ${ttlBadge(of.pending.defaultTtl)} is to come` : "";
  return (
    <span class={`badge ttl-${kind}`} title={`Default time to live: ${ttlBadge(of.defaultTtl)}${wait}`}>
      {ttlBadge(of.defaultTtl)}
      {of.pending && "…"}
    </span>
  );
}

/** A mark while the purge lags or is stopped, or an index is built. */
function State({ of }: { of: Container }) {
  if (of.isLagging) {
    const told = `The purge lags by ${duration(of.lagSeconds)}: ${count(of.backlog.items)} expired items wait`;
    return <span class="dot red" role="img" aria-label={told} title={told} />;
  }
  if (of.purge.state === "paused" || of.purge.state === "held") {
    const told = `The purge is ${of.purge.state}`;
    return <span class="dot amber" role="img" aria-label={told} title={told} />;
  }
  if (of.indexProgress < 100) {
    const told = `An index is being built: ${of.indexProgress} %`;
    return <span class="dot blue" role="img" aria-label={told} title={told} />;
  }
  return null;
}

/** Up and down go from link to link. */
function arrows(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || event.target instanceof HTMLInputElement) return;
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>("a")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  const next = links[at + step];
  if (at < 0 || !next) return;
  event.preventDefault();
  next.focus();
}
