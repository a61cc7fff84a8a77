// The change feed's end: the newest version of what was written, as it is written.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ask, isAbort, sentence } from "./api";
import { beats } from "./clock";
import type { ScreenProps } from "./container";
import { cut, indented, Json } from "./json";
import { keyOf } from "./item-calls";
import { current } from "./live";
import { rest } from "./place";
import { keyShown } from "./rows";
import { Button, Choice, Empty, Failure } from "./ui";
import { counted, moment } from "./words";

interface Change {
  number: number;
  lsn: string;
  ts: number;
  id: string;
  key: string;
  text: string;
}

type From = "now" | "beginning";

const KEPT = 60;
const PAGE = 100;

export function Feed({ at }: ScreenProps) {
  const from = useSignal<From>("now");
  const held = useSignal(false);
  const seen = useSignal(0);
  const list = useSignal<readonly Change[]>([]);
  const failure = useSignal<string | null>(null);
  const open = useSignal<number | null>(null);
  const place = useRef<string | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    place.current = null;
    list.value = [];
    seen.value = 0;
    const take = (changes: Change[]) => {
      seen.value += changes.length;
      list.value = [...changes.reverse(), ...list.peek()].slice(0, KEPT);
    };
    const tail = async () => {
      while (!abort.signal.aborted) {
        try {
          const more = await step(abort.signal, take);
          failure.value = null;
          if (more && !held.peek()) continue;
        } catch (error) {
          if (abort.signal.aborted || isAbort(error)) return;
          failure.value = sentence(error);
        }
        do await beats(1, abort.signal);
        while (held.peek());
      }
    };
    const step = async (signal: AbortSignal, took: (changes: Change[]) => void) => {
      const known = place.current ?? (from.peek() === "now" ? "*" : null);
      const answer = await ask(`${rest(at)}/docs`, {
        headers: {
          "a-im": "Incremental Feed",
          "x-ms-max-item-count": String(PAGE),
          ...(known ? { "if-none-match": known } : {}),
        },
        abort: signal,
        takes: [304],
      });
      place.current = answer.headers.get("etag") ?? place.current;
      if (answer.status === 304) return false;
      const json = new Json(answer.text);
      const paths = current.peek()?.partitionKeyPaths ?? [];
      took(
        json.elements(json.member("Documents")).map((node, index) => {
          const text = json.raw(node);
          const own = new Json(text);
          return {
            number: seen.peek() + index,
            lsn: (() => {
              const lsn = own.member("_lsn");
              return lsn ? own.raw(lsn) : "";
            })(),
            ts: own.number(own.member("_ts")) ?? 0,
            id: own.string(own.member("id")) ?? "",
            key: keyShown(keyOf(own, paths)),
            text,
          };
        }),
      );
      return true;
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
          ]}
          onChange={(next) => (from.value = next)}
        />
        <Button pressed={held.value} onClick={() => (held.value = !held.peek())}>
          {held.value ? "Stands still" : "Hold still"}
        </Button>
        <span class="soft">
          {counted(seen.value, "change")}
          {seen.value > KEPT && `, the last ${KEPT} are shown`}. The newest version of each living item; what
          expired is not told.
        </span>
      </div>
      <Failure of={failure.value} />
      {list.value.length === 0 ? (
        <Empty>{from.value === "now" ? "Waiting for a write…" : "Nothing was written that is alive."}</Empty>
      ) : (
        <div class="scroll">
          <table class="table rows">
            <thead>
              <tr>
                <th scope="col" class="num">
                  LSN
                </th>
                <th scope="col">Written (UTC)</th>
                <th scope="col">id</th>
                <th scope="col">Key</th>
                <th scope="col">Text</th>
              </tr>
            </thead>
            <tbody>
              {list.value.map((of) => (
                <Line key={of.number} of={of} open={open.value === of.number} toggle={() => (open.value = open.peek() === of.number ? null : of.number)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

function Line({ of, open, toggle }: { of: Change; open: boolean; toggle: () => void }) {
  return (
    <>
      <tr data-id={of.id}>
        <td class="num">{of.lsn}</td>
        <td class="time">{moment(of.ts)}</td>
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
          <td colSpan={5}>
            <pre class="code">{cut(indented(new Json(of.text)), 20_000)}</pre>
          </td>
        </tr>
      )}
    </>
  );
}
