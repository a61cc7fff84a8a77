// The change feed's end: the newest version of what was written, as it is written.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask, isAbort, Refusal, sentence } from "./api";
import { beats } from "./clock";
import type { ScreenProps } from "./container";
import { cut, indented, Json, type Node } from "./json";
import { keyOf } from "./item-calls";
import { current } from "./live";
import { rest, type Spot } from "./place";
import { keyShown } from "./rows";
import { Button, Choice, Empty, Failure } from "./ui";
import { counted, moment } from "./words";

interface Change {
  number: number;
  /** What happened; nothing, where only the newest version is told. */
  what: string;
  lsn: string;
  at: number;
  id: string;
  key: string;
  text: string;
}

type From = "now" | "beginning" | "all";

const KEPT = 60;
const PAGE = 100;

/** The next page behind a place, or from where it begins; null, if there is nothing new. */
async function next(at: Spot, from: From, place: string | null, abort: AbortSignal) {
  const known = place ?? (from === "beginning" ? null : "*");
  const answer = await ask(`${rest(at)}/docs`, {
    headers: {
      "a-im": from === "all" ? "Full-Fidelity Feed" : "Incremental Feed",
      "x-ms-max-item-count": String(PAGE),
      ...(from === "all" ? { "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15" } : {}),
      ...(known ? { "if-none-match": known } : {}),
    },
    abort,
    takes: [304],
    watch: true,
  });
  const etag = answer.headers.get("etag") ?? place;
  return { etag, json: answer.status === 304 ? null : new Json(answer.text) };
}

/** A version of an item, or in an envelope how it ended. */
function change(json: Json, node: Node, paths: readonly string[], number: number): Change {
  const metadata = json.member("metadata", node);
  const inside = json.member("current", node);
  const isEnvelope = metadata?.kind === "object" && inside !== undefined && !json.member("id", node);
  const of = new Json(json.raw(isEnvelope ? inside : node));
  const told = (name: string) => (isEnvelope ? json.member(name, metadata) : undefined);
  const lsn = isEnvelope ? told("lsn") : json.member("_lsn", node);
  const key = told("partitionKey");
  const expired = told("timeToLiveExpired");
  const what = json.string(told("operationType")) ?? "";
  return {
    number,
    what: expired && json.raw(expired) === "true" ? "expired" : what,
    lsn: lsn ? json.raw(lsn) : "",
    at: json.number(told("crts")) ?? of.number(of.member("_ts")) ?? 0,
    id: json.string(told("id")) ?? of.string(of.member("id")) ?? "",
    key: key ? values(json, key) : keyShown(keyOf(of, paths)),
    text: of.text,
  };
}

function values(json: Json, key: Node): string {
  return key.kind === "object" ? key.members.map(({ value }) => json.raw(value)).join(", ") : json.raw(key);
}

export function Feed({ at }: ScreenProps) {
  const from = useSignal<From>("now");
  const held = useSignal(false);
  const seen = useSignal(0);
  const list = useSignal<readonly Change[]>([]);
  const failure = useSignal<string | null>(null);
  const open = useSignal<number | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    let place: string | null = null;
    list.value = [];
    seen.value = 0;
    failure.value = null;
    const step = async () => {
      const { etag, json } = await next(at, from.peek(), place, abort.signal);
      place = etag;
      if (!json) return false;
      const paths = current.peek()?.partitionKeyPaths ?? [];
      const nodes = json.elements(json.member("Documents"));
      const changes = nodes.map((node, index) => change(json, node, paths, seen.peek() + index));
      seen.value += changes.length;
      list.value = [...changes.reverse(), ...list.peek()].slice(0, KEPT);
      return true;
    };
    const tail = async () => {
      for (;;) {
        try {
          const more = await step();
          failure.value = null;
          if (more && !held.peek()) continue;
        } catch (error) {
          if (abort.signal.aborted || isAbort(error)) return;
          failure.value = sentence(error);
          // What is refused once is refused always.
          if (error instanceof Refusal && error.status === 400) return;
        }
        do await beats(1, abort.signal);
        while (held.peek());
      }
    };
    tail().catch(() => undefined);
    return () => abort.abort();
  }, [at.database, at.container, from.value]);
  return (
    <div class="feed">
      <div class="toolbar">
        <Choice<From>
          label="From"
          value={from.value}
          options={[
            ["now", "From now on"],
            ["beginning", "From the beginning"],
            ["all", "Every version and end"],
          ]}
          onChange={(next) => (from.value = next)}
        />
        <Button pressed={held.value} onClick={() => (held.value = !held.peek())}>
          {held.value ? "Stands still" : "Hold still"}
        </Button>
        <span class="soft">
          {counted(seen.value, "change")}
          {seen.value > KEPT && `, the last ${KEPT} are shown`}.{" "}
          {from.value === "all"
            ? "From now on, with what was deleted and what has expired."
            : "The newest version of each living item; what expired is not told."}
        </span>
      </div>
      <Failure of={failure.value} />
      {list.value.length === 0 ? (
        <Empty>{failure.value ? "" : from.value === "beginning" ? "Nothing was written that is alive." : "Waiting for a write…"}</Empty>
      ) : (
        <div class="scroll">
          <table class="table rows">
            <thead>
              <tr>
                <th scope="col" class="num">
                  LSN
                </th>
                <th scope="col">At (UTC)</th>
                {from.value === "all" && <th scope="col">What</th>}
                <th scope="col">id</th>
                <th scope="col">Key</th>
                <th scope="col">Text</th>
              </tr>
            </thead>
            <tbody>
              {list.value.map((of) => (
                <Line key={of.number} of={of} all={from.value === "all"} open={open.value === of.number} toggle={() => (open.value = open.peek() === of.number ? null : of.number)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

function Line({ of, all, open, toggle }: { of: Change; all: boolean; open: boolean; toggle: () => void }) {
  return (
    <>
      <tr data-id={of.id}>
        <td class="num">{of.lsn}</td>
        <td class="time">{moment(of.at)}</td>
        {all && (
          <td>
            <span class={of.what === "expired" ? "badge amber" : of.what === "delete" ? "badge red" : "badge"}>{of.what}</span>
          </td>
        )}
        <td class="id">
          <button type="button" class="link" aria-expanded={open} onClick={toggle}>
            {of.id}
          </button>
        </td>
        <td class="mono">{of.key}</td>
        <td class="cell mono soft">{cut(of.text, 120)}</td>
      </tr>
      {open && (
        <tr class="more">
          <td colSpan={all ? 6 : 5}>
            <pre class="code">{cut(indented(new Json(of.text)), 20_000)}</pre>
          </td>
        </tr>
      )}
    </>
  );
}
