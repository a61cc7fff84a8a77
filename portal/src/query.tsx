// Queries: to write, to run, to look at what came and at what it cost.

import { useSignal, useSignalEffect, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { isAbort, sentence } from "./api";
import type { ScreenProps } from "./container";
import { keep, kept, placeOf, unsaved } from "./drafts";
import { Editor } from "./editing";
import type { Handle } from "./editor";
import { read } from "./json";
import { KeptQueries } from "./kept-queries";
import { here, set, type Spot } from "./place";
import { remember } from "./queries-kept";
import { copyAs, faults, page, type Asked, type Client, type Fault, type Parameter, type QueryPage } from "./query-calls";
import { page as itemsPage } from "./rows";
import { Results, type Show } from "./results";
import { Button, copy, Failure, Select } from "./ui";

export interface Run {
  asked: Asked;
  pages: QueryPage[];
}

/** What stands in the editor, and what of it was run: it stays when another screen is looked at. */
interface Draft {
  asked: Asked;
  ran: string;
}

const FIRST = "SELECT * FROM c";

/** A query that is written and run: its text, its parameters, and what came of it. */
function useQuery(at: Spot) {
  const name = placeOf(at, "query");
  const begin = useRef<Draft | null>(null);
  begin.current ??= first(name);
  const text = useRef(begin.current.asked.query);
  const parameters = useSignal<Parameter[]>([...begin.current.asked.parameters]);
  const ran = useRef(begin.current.ran);
  const run = useSignal<Run | null>(null);
  const busy = useSignal(false);
  const failure = useSignal<string | null>(null);
  const wrong = useSignal<Fault[]>([]);
  const handle = useRef<Handle | null>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);

  const asked = (): Asked => ({ query: text.current, parameters: parameters.peek() });
  const note = () => {
    const draft: Draft = { asked: asked(), ran: ran.current };
    keep(name, draft, JSON.stringify(draft.asked) !== draft.ran);
  };
  useSignalEffect(() => {
    if (parameters.value) note();
  });
  const mark = (faults: Fault[]) => {
    wrong.value = faults;
    handle.current?.mark(faults);
  };
  const attempt = async (what: (abort: AbortSignal) => Promise<void>) => {
    abort.current?.abort();
    const own = new AbortController();
    abort.current = own;
    busy.value = true;
    failure.value = null;
    mark([]);
    try {
      await what(own.signal);
    } catch (error) {
      if (own.signal.aborted || isAbort(error)) return;
      mark(faults(error));
      if (wrong.value.length === 0) failure.value = sentence(error);
    } finally {
      if (abort.current === own) busy.value = false;
    }
  };
  const start = () => {
    const of = asked();
    const bad = of.parameters.find(({ name, value }) => name !== "" && !("root" in read(value)));
    if (bad) {
      failure.value = `The value of ${bad.name} is no JSON. A text needs quotes.`;
      return;
    }
    set({ q: of.query.length <= 2000 && of.query !== FIRST ? of.query : null });
    void attempt(async (signal) => {
      const first = await page(at, of, null, signal);
      run.value = { asked: of, pages: [first] };
      ran.current = JSON.stringify(of);
      note();
      remember(of);
    });
  };
  const further = () =>
    attempt(async (signal) => {
      const of = run.peek();
      const after = of?.pages.at(-1)?.continuation;
      if (!of || !after) return;
      const next = await page(at, of.asked, after, signal);
      run.value = { ...of, pages: [...of.pages, next] };
    });
  const stop = () => {
    abort.current?.abort();
    busy.value = false;
  };
  const typed = (now: string) => {
    text.current = now;
    note();
    if (wrong.peek().length > 0) mark([]);
  };
  const take = (of: Asked) => {
    text.current = of.query;
    handle.current?.replace(of.query);
    parameters.value = [...of.parameters];
  };
  return { text, parameters, run, busy, failure, wrong, handle, asked, start, further, stop, typed, take };
}

/** What the editor begins with: what was left there, what the address says, or all items. */
function first(name: string): Draft {
  const query = here.peek().params.get("q");
  const asked: Asked = { query: query ?? FIRST, parameters: [] };
  const draft = kept<Draft>(name);
  const goesOn = draft && (query === null || query === draft.asked.query || unsaved.peek().has(name));
  return goesOn ? draft : { asked, ran: JSON.stringify(asked) };
}

export function Query({ at }: ScreenProps) {
  const query = useQuery(at);
  const { parameters, run, busy, failure, wrong } = query;
  const show = useSignal<Show>("table");
  const opened = useSignal(false);
  const names = useNames(at);
  return (
    <div class="query">
      <div class="stack tight">
        <Editor
          class="query-editor"
          label="Query"
          language="sql"
          text={query.text.current}
          handle={query.handle}
          names={names}
          onChange={query.typed}
          onDone={query.start}
        />
        <Parameters of={parameters} />
        <div class="row">
          <Button kind="primary" icon="play" onClick={query.start}>
            Run
          </Button>
          <kbd>Ctrl Enter</kbd>
          {busy.value && <Button onClick={query.stop}>Stop</Button>}
          {busy.value && <span class="soft">asking…</span>}
          <span class="space" />
          <Button onClick={() => (parameters.value = [...parameters.peek(), { name: "@", value: "" }])}>
            Add a parameter
          </Button>
          <Button onClick={() => (opened.value = true)}>Kept queries</Button>
          <CopyAs at={at} asked={query.asked} />
        </div>
        {wrong.value.map((fault) => (
          <Failure key={fault.message + fault.from} of={fault.message} />
        ))}
        <Failure of={failure.value} />
      </div>
      {run.value && <Results at={at} run={run} show={show} busy={busy.value} further={query.further} />}
      {opened.value && (
        <KeptQueries
          asked={query.asked()}
          take={(of) => {
            opened.value = false;
            query.take(of);
          }}
          close={() => (opened.value = false)}
        />
      )}
    </div>
  );
}

function CopyAs({ at, asked }: { at: Spot; asked: () => Asked }) {
  return (
    <Select<Client | "">
      label="Copy as"
      value=""
      options={[
        ["", "Copy as…"],
        ["curl", "curl"],
        ["python", "Python"],
        ["javascript", "JavaScript"],
      ]}
      onChange={(client) => {
        if (client) void copy(copyAs(client, at, asked()), "The query");
      }}
    />
  );
}

function Parameters({ of }: { of: Signal<Parameter[]> }) {
  const change = (at: number, part: Partial<Parameter>) => {
    of.value = of.peek().map((old, index) => (index === at ? { ...old, ...part } : old));
  };
  if (of.value.length === 0) return null;
  return (
    <ul class="parameters" aria-label="Parameters">
      {of.value.map((parameter, at) => (
        <li key={at} class="row">
          <input
            class="input mono"
            aria-label={`Name of parameter ${at + 1}`}
            spellcheck={false}
            autocomplete="off"
            value={parameter.name}
            onInput={(event) => change(at, { name: event.currentTarget.value })}
          />
          <input
            class="input mono grow"
            aria-label={`Value of parameter ${at + 1}, as JSON`}
            placeholder={'JSON, such as 5 or "text"'}
            spellcheck={false}
            autocomplete="off"
            value={parameter.value}
            onInput={(event) => change(at, { value: event.currentTarget.value })}
          />
          <Button
            kind="quiet"
            icon="close"
            label={`Remove parameter ${at + 1}`}
            onClick={() => (of.value = of.peek().filter((_, index) => index !== at))}
          />
        </li>
      ))}
    </ul>
  );
}

/** Names that some items have, for what may come after a dot. */
function useNames(at: Spot): () => Promise<string[]> {
  const names = useRef<Promise<string[]> | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    names.current = sampled(at, abort.signal).catch(() => []);
    return () => abort.abort();
  }, [at.database, at.container]);
  return async () => (await names.current) ?? [];
}

const NAMES = 500;

async function sampled(at: Spot, abort: AbortSignal): Promise<string[]> {
  const { items } = await itemsPage(at, { order: "key", within: null, after: null }, abort);
  const found = new Set<string>();
  for (const item of items) {
    for (const [, name] of item.json.raw(item.json.root).matchAll(/"([\p{L}_][\p{L}\p{N}_]*)":/gu)) found.add(name!);
  }
  const system = (name: string) => Number(name.startsWith("_"));
  return [...found].slice(0, NAMES).sort((a, b) => system(a) - system(b) || (a < b ? -1 : 1));
}
