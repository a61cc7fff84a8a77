// What a query answered: as a table, as text, as a plan, in figures.

import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Editor } from "./editing";
import type { Handle } from "./editor";
import { indented } from "./json";
import type { Spot } from "./place";
import { Plan } from "./plan";
import type { Run } from "./query";
import { cell, columns, csv, explain, jsonLines, page, type Asked, type IndexMetrics, type Plan as Told, type QueryPage } from "./query-calls";
import { Button, Choice, Empty, Failure, save, Select, useAsked, useTask } from "./ui";
import { count, counted, figure } from "./words";

export type Show = "table" | "text" | "plan" | "figures";

interface Props {
  at: Spot;
  run: Signal<Run | null>;
  show: Signal<Show>;
  busy: boolean;
  further: () => Promise<void>;
}

/** What a page may have in the document: cells of a table. */
const CELLS = 420;
const COLUMNS = 14;

export function Results({ at, run, show, busy, further }: Props) {
  const shown = useSignal({ page: 0, part: 0 });
  const of = run.value;
  useEffect(() => {
    shown.value = { page: 0, part: 0 };
  }, [of?.asked]);
  if (!of) return null;
  const charge = of.pages.reduce((sum, { charge }) => sum + charge, 0);
  const rows = of.pages.reduce((sum, { rows }) => sum + rows.length, 0);
  const last = of.pages.at(-1);
  const current = of.pages[Math.min(shown.value.page, of.pages.length - 1)]!;
  return (
    <section class="results" aria-label="Answer">
      <div class="row">
        <Choice<Show>
          label="Show as"
          value={show.value}
          options={[
            ["table", "Table"],
            ["text", "Text"],
            ["plan", "Plan"],
            ["figures", "Figures"],
          ]}
          onChange={(next) => (show.value = next)}
        />
        <span class="soft" role="status">
          {counted(rows, "row")}
          {last?.continuation ? " so far" : ""} · <strong>{figure(charge)} RU</strong> ·{" "}
          {figure(of.pages.reduce((sum, { milliseconds }) => sum + milliseconds, 0))} ms
        </span>
        <span class="space" />
        <SaveAs at={at} run={run} />
      </div>
      {show.value === "table" && <Rows of={current} shown={shown} pages={of.pages.length} busy={busy} further={further} />}
      {show.value === "text" && (
        <>
          <Text of={current} />
          <Pages of={current} shown={shown} pages={of.pages.length} busy={busy} further={further} parts={1} />
        </>
      )}
      {show.value === "plan" && <AskedPlan at={at} of={of.asked} />}
      {show.value === "figures" && <Figures of={current} />}
    </section>
  );
}

/** Plans that were asked for: to tell one, the server carries out the first page once more. */
const plans = new WeakMap<Asked, Promise<Told>>();

function AskedPlan({ at, of }: { at: Spot; of: Asked }) {
  const told = useAsked<Told>(
    (abort) => {
      const plan = plans.get(of) ?? explain(at, of, abort);
      plans.set(of, plan);
      plan.catch(() => plans.delete(of));
      return plan;
    },
    [of],
  );
  if (told.error.value) return <Failure of={told.error.value} />;
  return told.value.value && !told.busy.value ? (
    <Plan of={told.value.value} />
  ) : (
    <Empty>The plan is being asked for…</Empty>
  );
}

const ROWS_SAVED = 100_000;

function SaveAs({ at, run }: { at: Spot; run: Signal<Run | null> }) {
  const task = useTask();
  const act = (kind: string) =>
    task.run(async () => {
      const of = run.peek();
      if (!of) return;
      const pages = await allPages(at, of);
      if (kind === "csv") save(`${at.container}.csv`, "text/csv", csv(pages));
      else save(`${at.container}.jsonl`, "application/x-ndjson", jsonLines(pages));
    });
  return (
    <>
      <Failure of={task.error.value} />
      <Select
        label="Save the rows as"
        value=""
        disabled={task.busy.value}
        options={[
          ["", task.busy.value ? "Reading all rows…" : "Save rows as…"],
          ["jsonl", "JSON lines"],
          ["csv", "CSV"],
        ]}
        onChange={(kind) => kind && act(kind)}
      />
    </>
  );
}

/** All pages of a query, those that were not read yet too. */
async function allPages(at: Spot, of: Run): Promise<QueryPage[]> {
  const pages = [...of.pages];
  const abort = new AbortController();
  let rows = pages.reduce((sum, { rows }) => sum + rows.length, 0);
  for (let after = pages.at(-1)?.continuation; after; after = pages.at(-1)?.continuation) {
    if (rows >= ROWS_SAVED) throw new Error(`More than ${count(ROWS_SAVED)} rows: dayfly query saves them all.`);
    const next = await page(at, of.asked, after, abort.signal);
    rows += next.rows.length;
    pages.push(next);
  }
  return pages;
}

interface RowsProps {
  of: QueryPage;
  shown: Signal<{ page: number; part: number }>;
  pages: number;
  busy: boolean;
  further: () => Promise<void>;
}

function Rows({ of, shown, pages, busy, further }: RowsProps) {
  const { json, rows } = of;
  const names = columns(rows, COLUMNS);
  const size = Math.max(10, Math.floor(CELLS / Math.max(1, names.length)));
  const parts = Math.max(1, Math.ceil(rows.length / size));
  const part = Math.min(shown.value.part, parts - 1);
  const some = rows.slice(part * size, (part + 1) * size);
  return (
    <>
      {rows.length === 0 ? (
        <Empty>{of.continuation ? "This page has no rows; there may be more on the next." : "No rows."}</Empty>
      ) : (
        <div class="scroll">
          <table class="table rows">
            <thead>
              <tr>
                {names.map((name) => (
                  <th scope="col" key={name}>
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {some.map((row, at) => (
                <tr key={at}>
                  {names.map((name) => (
                    <td key={name} class="cell">
                      {cell(json, row, name)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Pages of={of} shown={shown} pages={pages} busy={busy} further={further} parts={parts} />
    </>
  );
}

function Pages({ of, shown, pages, busy, further, parts }: RowsProps & { parts: number }) {
  const { page, part } = shown.value;
  const isLast = page >= pages - 1 && part >= parts - 1;
  const forward = async () => {
    if (part < parts - 1) shown.value = { page, part: part + 1 };
    else {
      if (page >= pages - 1) await further();
      shown.value = { page: page + 1, part: 0 };
    }
  };
  const backward = () => {
    shown.value = part > 0 ? { page, part: part - 1 } : { page: Math.max(0, page - 1), part: 0 };
  };
  return (
    <div class="pager">
      <Button icon="left" disabled={page === 0 && part === 0} onClick={backward}>
        Back
      </Button>
      <span class="soft">
        page {page + 1}
        {parts > 1 && `, part ${part + 1} of ${parts}`}
      </span>
      <Button disabled={busy || (isLast && of.continuation === null)} onClick={() => void forward()}>
        Next
      </Button>
    </div>
  );
}

function Text({ of }: { of: QueryPage }) {
  const handle = useRef<Handle | null>(null);
  const text = `[\n${of.rows.map((row) => `  ${indented(of.json, row, 1)}`).join(",\n")}\n]`;
  useEffect(() => handle.current?.replace(text), [of]);
  return <Editor class="text-editor" label="Rows" language="json" text={text} readOnly handle={handle} />;
}

function Figures({ of }: { of: QueryPage }) {
  return (
    <div class="columns">
      <table class="table tight">
        <tbody>
          {Object.entries(of.metrics).map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="num">{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {of.indexes && <Indexes of={of.indexes} />}
    </div>
  );
}

function Indexes({ of }: { of: IndexMetrics }) {
  const list = (specs: IndexMetrics["UtilizedIndexes"]) => [
    ...specs.SingleIndexes.map(({ IndexSpec }) => IndexSpec),
    ...specs.CompositeIndexes.map(({ IndexSpecs }) => IndexSpecs.join(", ")),
  ];
  const used = list(of.UtilizedIndexes);
  const missing = list(of.PotentialIndexes);
  return (
    <div class="stack">
      <div>
        <h3>Indexes that it uses</h3>
        {used.length === 0 ? <p class="soft">None.</p> : used.map((spec) => <p key={spec} class="mono">{spec}</p>)}
      </div>
      <div>
        <h3>Indexes that would help</h3>
        {missing.length === 0 ? <p class="soft">None.</p> : missing.map((spec) => <p key={spec} class="mono">{spec}</p>)}
      </div>
    </div>
  );
}
