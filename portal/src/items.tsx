// The items of a container: in the order of their keys, or those first that die first.

import { useSignal, type Signal } from "@preact/signals";
import { second } from "./clock";
import { current, epoch } from "./live";
import type { ScreenProps } from "./container";
import { Item } from "./item";
import { Bulk } from "./bulk";
import { Columns } from "./columns";
import { placeOf, unsaved } from "./drafts";
import { address, here, set, type Spot } from "./place";
import { cell, chosenFields, fields, keyFields, keyShown, page, rowKey, type Order, type Page, type Row, type View } from "./rows";
import { readOnly } from "./session";
import { Button, Choice, Countdown, Empty, Failure, Select, useAsked } from "./ui";
import { counted, exact, moment } from "./words";

const WITHIN = [
  ["", "any time"],
  ["60", "a minute"],
  ["3600", "an hour"],
  ["86400", "a day"],
  ["604800", "a week"],
] as const;

function viewOf(params: URLSearchParams): View {
  const within = params.get("within");
  return {
    order: params.get("order") === "expiry" ? "expiry" : "key",
    within: within && /^\d+$/.test(within) ? Number(within) : null,
    after: params.get("after"),
  };
}

export function Items({ at }: ScreenProps) {
  const { params } = here.value;
  const view = viewOf(params);
  const turn = useSignal(0);
  const chosen = useSignal<ReadonlyMap<string, Row>>(new Map());
  const before = useSignal<(string | null)[]>([]);
  const asked = useAsked<Page>(
    (abort) => page(at, view, abort),
    [at.database, at.container, view.order, view.within, view.after, turn.value, epoch.value],
  );
  const open = params.get("id") !== null || params.has("new");
  const refresh = () => void turn.value++;
  const look: Look = (next) => {
    chosen.value = new Map();
    if (!("after" in next)) before.value = [];
    set({ after: null, ...next });
  };
  const told = asked.value.value;
  return (
    <div class={open ? "items split" : "items"}>
      <div class="list">
        <Toolbar at={at} view={view} rows={told?.items ?? []} narrow={open} look={look} refresh={refresh} />
        {chosen.value.size > 0 && <Bulk at={at} chosen={chosen} done={refresh} />}
        <Failure of={asked.error.value} />
        {told && (
          <>
            <Pending of={told} />
            <Table at={at} page={told} chosen={chosen} narrow={open} />
            {told.items.length === 0 && <Nothing view={view} />}
            <Pager view={view} page={told} before={before} busy={asked.busy.value} look={look} />
          </>
        )}
      </div>
      {open && <Opened at={at} changed={refresh} />}
    </div>
  );
}

type Look = (next: Partial<Record<"order" | "within" | "after", string | null>>) => void;

interface ToolbarProps {
  at: Spot;
  view: View;
  rows: readonly Row[];
  narrow: boolean;
  look: Look;
  refresh: () => void;
}

function Toolbar({ at, view, rows, narrow, look, refresh }: ToolbarProps) {
  return (
    <div class="toolbar">
      <Choice<Order>
        label="Order"
        value={view.order}
        options={[
          ["key", "Key order"],
          ["expiry", "Soonest to die"],
        ]}
        onChange={(order) => look({ order: order === "key" ? null : order, within: null })}
      />
      {view.order === "expiry" && (
        <Select
          label="That die within"
          value={String(view.within ?? "") as (typeof WITHIN)[number][0]}
          options={within(view.within)}
          onChange={(next) => look({ within: next || null })}
        />
      )}
      <Button kind="quiet" icon="refresh" label="Read again" onClick={refresh} />
      <span class="space" />
      {!narrow && <Columns at={at} rows={rows} changed={refresh} />}
      {!readOnly.value && (
        <Button icon="plus" onClick={() => set({ new: "1", id: null, pk: null })}>
          New item
        </Button>
      )}
    </div>
  );
}

interface PagerProps {
  view: View;
  page: Page;
  before: Signal<(string | null)[]>;
  busy: boolean;
  look: Look;
}

function Pager({ view, page, before, busy, look }: PagerProps) {
  const back = () => {
    const steps = [...before.peek()];
    const after = steps.pop() ?? null;
    before.value = steps;
    look({ after });
  };
  const next = () => {
    before.value = [...before.peek(), view.after];
    look({ after: page.continuation });
  };
  return (
    <div class="pager">
      <Button icon="left" disabled={view.after === null} onClick={back}>
        Back
      </Button>
      <span class="soft">
        {counted(page.items.length, "row")}
        {before.value.length > 0 && `, page ${before.value.length + 1}`}
        {busy && " · reading…"}
      </span>
      <Button disabled={page.continuation === null} onClick={next}>
        Next
      </Button>
    </div>
  );
}

function within(value: number | null) {
  const known = WITHIN.some(([of]) => of === String(value ?? ""));
  return known ? WITHIN : [...WITHIN, [String(value), exact(value ?? 0)] as const];
}

function Opened({ at, changed }: { at: Spot; changed: () => void }) {
  const { params } = here.value;
  const id = params.get("id");
  const partitionKey = params.get("pk") ?? "[{}]";
  const close = () => set({ id: null, pk: null, self: null, new: null });
  const ref = id === null ? null : { id, partitionKey, self: params.get("self") ?? undefined };
  return (
    <Item
      key={ref ? rowKey(ref) : "new"}
      at={at}
      item={ref}
      paths={current.value?.partitionKeyPaths ?? null}
      changed={changed}
      close={close}
    />
  );
}

function Pending({ of }: { of: Page }) {
  if (!of.pending) return null;
  return (
    <p class="note info">
      A change of the default to {of.pending.defaultTtl === null ? "off" : of.pending.defaultTtl === -1 ? "no default" : exact(of.pending.defaultTtl)}{" "}
      counts from {moment(of.pending.at)} on, in <Countdown at={of.pending.at} />. The countdowns here know of it.
    </p>
  );
}

function Nothing({ view }: { view: View }) {
  return (
    <Empty>
      {view.within !== null
        ? "No item dies within that time."
        : view.after
          ? "There is nothing more."
          : "No items are alive here."}
    </Empty>
  );
}

interface TableProps {
  at: Spot;
  page: Page;
  chosen: Signal<ReadonlyMap<string, Row>>;
  narrow: boolean;
}

function Table({ at, page, chosen, narrow }: TableProps) {
  const keys = current.value?.partitionKeyPaths ?? [];
  const columns = narrow ? [] : (chosenFields(at) ?? fields(page.items, keyFields(keys)).slice(0, 3));
  const all = page.items.length > 0 && page.items.every((row) => chosen.value.has(rowKey(row)));
  const choose = (rows: readonly Row[], on: boolean) => {
    const next = new Map(chosen.peek());
    for (const row of rows) {
      if (on) next.set(rowKey(row), row);
      else next.delete(rowKey(row));
    }
    chosen.value = next;
  };
  if (page.items.length === 0) return null;
  return (
    <div class="scroll">
      <table class="table rows living">
        <thead>
          <tr>
            {!readOnly.value && (
              <th class="check">
                <input
                  type="checkbox"
                  aria-label="Select all rows of this page"
                  checked={all}
                  onChange={(event) => choose(page.items, event.currentTarget.checked)}
                />
              </th>
            )}
            <th scope="col">id</th>
            {!narrow && (
              <th scope="col" class="mono">
                {keys.length > 0 ? keys.join(", ") : "key"}
              </th>
            )}
            {columns.map((path) => (
              <th scope="col" key={path} class="cell">
                {path}
              </th>
            ))}
            {!narrow && (
              <th scope="col" class="time">
                _ts
              </th>
            )}
            {!narrow && (
              <th scope="col" class="num">
                ttl
              </th>
            )}
            <th scope="col" class="num">
              expires in
            </th>
          </tr>
        </thead>
        <tbody onKeyDown={arrows}>
          {page.items.map((row) => (
            <Line
              key={rowKey(row)}
              at={at}
              row={row}
              columns={columns}
              narrow={narrow}
              isChosen={chosen.value.has(rowKey(row))}
              choose={(on) => choose([row], on)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface LineProps {
  at: Spot;
  row: Row;
  columns: readonly string[];
  narrow: boolean;
  isChosen: boolean;
  choose: (on: boolean) => void;
}

function Line({ at, row, columns, narrow, isChosen, choose }: LineProps) {
  const { path, params } = here.value;
  const { json } = row;
  const self = /^\.\.?$/.test(row.id) ? (json.string(json.member("_self")) ?? null) : null;
  const isOpen = params.get("id") === row.id && params.get("pk") === row.partitionKey;
  const target = { ...Object.fromEntries(params), id: row.id || null, pk: row.partitionKey, self, new: null };
  const dead = row.expiresAt !== null && row.expiresAt <= second.value;
  return (
    <tr class={`${dead ? "dead" : ""} ${isOpen ? "here" : ""}`} data-id={row.id}>
      {!readOnly.value && (
        <td class="check">
          <input
            type="checkbox"
            aria-label={`Select ${row.id}`}
            checked={isChosen}
            onChange={(event) => choose(event.currentTarget.checked)}
          />
        </td>
      )}
      <td class="id">
        <a href={address(path, target)} aria-current={isOpen ? "true" : undefined}>
          {row.id}
        </a>
        {unsaved.value.has(placeOf(at, rowKey(row))) && <span class="badge amber">unsaved</span>}
      </td>
      {!narrow && <td class="mono">{keyShown(row.partitionKey)}</td>}
      {columns.map((of) => (
        <td key={of} class="cell">
          {cell(json, of)}
        </td>
      ))}
      {!narrow && <td class="time">{moment(row.ts)}</td>}
      {!narrow && <OwnTtl row={row} />}
      <td class="num expires">
        <Countdown at={row.expiresAt} />
      </td>
    </tr>
  );
}

function OwnTtl({ row }: { row: Row }) {
  if (!row.ignored) return <td class="num">{row.ttl ?? ""}</td>;
  const why = row.class === "uninterpretable" ? "it is no number of seconds" : "time to live is off here";
  return (
    <td class="num">
      <s class="soft" title={`This ttl counts for nothing: ${why}.`}>
        {cell(row.json, "ttl")}
      </s>
    </td>
  );
}

/** Up and down go from row to row. */
function arrows(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const focused = document.activeElement;
  const what = focused instanceof HTMLInputElement ? "input" : "a";
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>(what)];
  const next = all[all.indexOf(focused as HTMLElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
