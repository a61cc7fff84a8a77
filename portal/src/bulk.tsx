// What can be done to many items at once, and how far it is.

import { useSignal, type Signal } from "@preact/signals";
import { sentence } from "./api";
import { deleteItem, readItem, rewrite } from "./item-calls";
import type { Spot } from "./place";
import { rowKey, type Row } from "./rows";
import { SetTtl } from "./set-ttl";
import { Button, Dialog, Failure, say } from "./ui";
import { count, counted } from "./words";

interface Props {
  at: Spot;
  chosen: Signal<ReadonlyMap<string, Row>>;
  done: () => void;
}

/** How many requests are under way together. */
const TOGETHER = 4;

export function Bulk({ at, chosen, done }: Props) {
  const asks = useSignal<"delete" | "ttl" | null>(null);
  const progress = useSignal<{ done: number; of: number } | null>(null);
  const failed = useSignal<string | null>(null);
  const rows = [...chosen.value.values()];
  const run = async (name: string, act: (row: Row) => Promise<string | null>) => {
    asks.value = null;
    failed.value = null;
    const left = [...rows];
    const refused: string[] = [];
    progress.value = { done: 0, of: rows.length };
    const worker = async () => {
      for (let row = left.shift(); row; row = left.shift()) {
        const wrong = await act(row).catch(sentence);
        if (wrong) refused.push(`${row.id}: ${wrong}`);
        else {
          const next = new Map(chosen.peek());
          next.delete(rowKey(row));
          chosen.value = next;
        }
        progress.value = { done: rows.length - left.length, of: rows.length };
      }
    };
    await Promise.all(Array.from({ length: TOGETHER }, worker));
    progress.value = null;
    say(`${name}: ${counted(rows.length - refused.length, "item")}.`);
    if (refused.length > 0) {
      const more = refused.length > 3 ? `, and ${count(refused.length - 3)} more` : "";
      failed.value = `${count(refused.length)} stayed as they were. ${refused.slice(0, 3).join("; ")}${more}`;
    }
    done();
  };
  const remove = async (row: Row) => {
    const { json } = row;
    const etag = json.string(json.member("_etag")) ?? "*";
    const ref = { ...row, self: json.string(json.member("_self")) };
    return (await deleteItem(at, ref, etag)) === "changed" ? "changed meanwhile" : null;
  };
  const renew = (ttl: number | "keep" | "none") => async (row: Row) => {
    const { json } = row;
    const item = await readItem(at, { ...row, self: json.string(json.member("_self")) });
    const outcome = item && (await rewrite(at, item, ttl));
    return outcome?.kind === "saved" ? null : "gone meanwhile";
  };
  const busy = progress.value !== null;
  return (
    <div class="bulk" role="group" aria-label="With the selected items">
      <strong>{counted(rows.length, "item")} selected</strong>
      {progress.value ? (
        <progress max={progress.value.of} value={progress.value.done} aria-label="Progress" />
      ) : (
        <>
          <Button onClick={() => void run("Touched", renew("keep"))}>Touch</Button>
          <Button onClick={() => (asks.value = "ttl")}>Set ttl…</Button>
          <Button onClick={() => void run("Kept for ever", renew(-1))}>Keep for ever</Button>
          <Button kind="danger" icon="trash" onClick={() => (asks.value = "delete")}>
            Delete
          </Button>
          <Button kind="quiet" onClick={() => (chosen.value = new Map())}>
            Select none
          </Button>
        </>
      )}
      <Failure of={failed.value} />
      {asks.value === "ttl" && !busy && (
        <SetTtl close={() => (asks.value = null)} act={(ttl) => void run("Ttl set", renew(ttl))} />
      )}
      {asks.value === "delete" && !busy && (
        <Dialog title={`Delete ${counted(rows.length, "item")}?`} close={() => (asks.value = null)}>
          <p>Items that somebody changed since they were shown here are left alone. This cannot be taken back.</p>
          <footer>
            <Button onClick={() => (asks.value = null)}>Cancel</Button>
            <Button kind="danger" onClick={() => void run("Deleted", remove)}>
              Delete {counted(rows.length, "item")}
            </Button>
          </footer>
        </Dialog>
      )}
    </div>
  );
}
