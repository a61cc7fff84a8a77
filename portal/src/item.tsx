// One item: its text to edit, and beside it why it lives and until when.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { second } from "./clock";
import { Conflict } from "./conflict";
import { Editor } from "./editing";
import type { Handle } from "./editor";
import {
  createItem,
  deleteItem,
  explain,
  readItem,
  rewrite,
  saveItem,
  withoutSystem,
  type Explained,
  type Ref,
  type Stored,
} from "./item-calls";
import { half, HALF, indented, isSystem, Json, read, withMember, without } from "./json";
import { epoch } from "./live";
import { set, type Spot } from "./place";
import { readOnly } from "./session";
import { SetTtl } from "./set-ttl";
import { Button, copy, Countdown, Empty, Failure, Icon, Note, say, useAsked, useTask } from "./ui";
import { moment } from "./words";
import { keyShown } from "./rows";

interface Props {
  at: Spot;
  /** Null: a new one. */
  item: Ref | null;
  paths: readonly string[];
  changed: () => void;
  close: () => void;
}

/** The text that people edit: without what is the server's. */
function own(item: Stored): string {
  return without(new Json(item.text), isSystem);
}

export function Item(props: Props) {
  const asked = useAsked(
    (abort) => (props.item ? readItem(props.at, props.item, abort) : Promise.resolve(null)),
    [],
  );
  if (asked.busy.value) return <aside class="pane" aria-label="Item" />;
  const found = asked.value.value;
  return (
    <aside class="pane" aria-label="Item">
      {asked.error.value ? (
        <>
          <Failure of={asked.error.value} />
          <Button onClick={props.close}>Close</Button>
        </>
      ) : props.item && !found ? (
        <Empty>
          This item is not there: it has expired, or was deleted.{" "}
          <Button onClick={props.close}>Close</Button>
        </Empty>
      ) : (
        <Open {...props} found={found} />
      )}
    </aside>
  );
}

function template(paths: readonly string[]): string {
  const names = paths.filter((path) => /^\/[^/]+$/.test(path) && path !== "/id").map((path) => path.slice(1));
  const members = names.map((name) => `  ${JSON.stringify(name)}: ""`);
  return `{\n${['  "id": ""', ...members].join(",\n")}\n}`;
}

/** An item that is open: what is known of it, and what can be done with it. */
function useItem({ at, found, paths, changed, close }: Props & { found: Stored | null }) {
  const base = useSignal(found);
  const text = useRef(found ? own(found) : template(paths));
  const dirty = useSignal(false);
  const isGone = useSignal(false);
  const other = useSignal<Stored | null>(null);
  const handle = useRef<Handle | null>(null);
  const task = useTask();

  const put = (next: string) => {
    text.current = next;
    handle.current?.replace(next);
  };
  const take = (item: Stored, replace: boolean) => {
    const before = base.peek();
    base.value = item;
    other.value = null;
    isGone.value = false;
    dirty.value = false;
    if (replace) put(own(item));
    if (item.id !== before?.id) set({ id: item.id, pk: item.partitionKey, new: null });
    changed();
  };
  const save = () =>
    task.run(async () => {
      if (readOnly.peek()) return;
      const json = read(text.current);
      if (!(json instanceof Json)) throw new Error(`This is no JSON: ${json.message}`);
      if (json.root.kind !== "object") throw new Error("An item is an object.");
      const place = half(text.current);
      if (place !== undefined) {
        throw new Error(`${HALF} It stands in line ${text.current.slice(0, place).split("\n").length}.`);
      }
      const sent = withoutSystem(text.current);
      const known = base.peek();
      if (!known || isGone.peek()) {
        take(await createItem(at, sent, paths), false);
        say("Created.");
        return;
      }
      const outcome = await saveItem(at, known, sent, known.etag);
      if (outcome.kind === "saved") {
        take(outcome.item, false);
        say(outcome.item.ignored ? "Saved. Its ttl counts for nothing here." : "Saved.");
      } else if (outcome.kind === "changed") other.value = outcome.now;
      else isGone.value = true;
    });
  const renew = (ttl: number | "keep" | "none", done: string) =>
    task.run(async () => {
      const known = base.peek();
      if (!known) return;
      const item = await rewrite(at, known, ttl);
      if (!item) {
        isGone.value = true;
        return;
      }
      // What is being written stays; only its ttl follows.
      const kept = dirty.peek() && read(text.current) instanceof Json;
      take(item, !dirty.peek());
      if (kept && ttl !== "keep") {
        put(indented(new Json(withMember(text.current, "ttl", ttl === "none" ? undefined : String(ttl)))));
      }
      dirty.value = kept;
      say(done);
    });
  const remove = () =>
    task.run(async () => {
      const known = base.peek();
      if (!known) return;
      if ((await deleteItem(at, known, known.etag)) === "changed") {
        other.value = await readItem(at, known);
        return;
      }
      say(`${known.id} is deleted.`);
      changed();
      close();
    });
  const typed = (now: string) => {
    text.current = now;
    const known = base.peek();
    dirty.value = known === null || now !== own(known);
  };
  return { base, text, dirty, isGone, other, handle, task, take, save, renew, remove, typed };
}

type OpenItem = ReturnType<typeof useItem>;

/** Asks why it lives: again when something changes, and in the second in which it should be gone. */
function useReason(at: Spot, { base, isGone }: OpenItem): Explained | null {
  const turn = useSignal(0);
  const of = base.value;
  const told = useAsked<Explained | null>(
    (abort) => (of ? explain(at, of, abort) : Promise.resolve(null)),
    [of?.etag, of?.id, epoch.value, turn.value],
  ).value;
  useSignalEffect(() => {
    const end = told.value?.expiresAt;
    if (told.value?.state === "live" && end && second.value >= end) turn.value = end;
  });
  useEffect(() => {
    if (told.value && base.peek()) isGone.value = told.value.state !== "live";
  }, [told.value]);
  return told.value;
}

function Open(props: Props & { found: Stored | null }) {
  const item = useItem(props);
  const told = useReason(props.at, item);
  const { base, text, isGone, other, handle, task } = item;
  const of = base.value;
  const theirs = other.value;
  if (theirs && of) {
    return (
      <Conflict
        base={own(of)}
        theirs={own(theirs)}
        mine={text.current}
        keepMine={() => {
          base.value = theirs;
          other.value = null;
          item.save();
        }}
        takeTheirs={() => item.take(theirs, true)}
        goOn={() => (other.value = null)}
      />
    );
  }
  return (
    <>
      <header class="pane-head">
        <h2 class="breaks">{of ? of.id : "New item"}</h2>
        {of && <span class="soft mono">{keyShown(of.partitionKey)}</span>}
        <span class="space" />
        <Button kind="quiet" icon="close" label="Close the item" onClick={props.close} />
      </header>
      {of && <Why told={told} of={of} expiresAt={told?.expiresAt ?? null} />}
      {isGone.value && (
        <Note kind="warn">
          This item is gone: it has expired, or was deleted. Its text is still here, to copy or to create anew.
        </Note>
      )}
      <Editor
        class="item-editor"
        label={of ? `Text of the item ${of.id}` : "Text of the new item"}
        language="json"
        text={text.current}
        readOnly={readOnly.value}
        handle={handle}
        onChange={item.typed}
        onDone={item.save}
      />
      {of && <System of={of} />}
      <Failure of={task.error.value} />
      <Actions item={item} />
    </>
  );
}

function Actions({ item }: { item: OpenItem }) {
  const { base, text, dirty, isGone, task, save, renew, remove } = item;
  const asksTtl = useSignal(false);
  const isNew = base.value === null || isGone.value;
  const writes = !readOnly.value;
  return (
    <footer class="actions">
      {writes && (
        <Button kind="primary" disabled={task.busy.value} onClick={save}>
          {isNew ? "Create" : dirty.value ? "Save" : "Save again"}
        </Button>
      )}
      <Button onClick={() => void copy(text.current, "The text")}>Copy</Button>
      <span class="space" />
      {!isNew && writes && (
        <>
          <Button
            title="Writes it again as it is, so its life begins anew"
            onClick={() => renew("keep", "Touched: its life has begun anew.")}
          >
            Touch
          </Button>
          <Button onClick={() => (asksTtl.value = true)}>Set ttl…</Button>
          <Button onClick={() => renew(-1, "It is kept for ever.")}>Keep for ever</Button>
          <Button kind="danger" icon="trash" label="Delete the item" onClick={remove} />
        </>
      )}
      {asksTtl.value && (
        <SetTtl
          close={() => (asksTtl.value = false)}
          act={(ttl) => {
            asksTtl.value = false;
            renew(ttl, "The ttl is set, and its life has begun anew.");
          }}
        />
      )}
    </footer>
  );
}

/** Why it lives, in the server's own sentence. */
function Why({ told, of, expiresAt }: { told: Explained | null; of: Stored; expiresAt: number | null }) {
  if (!told) return <p class="why soft">…</p>;
  const json = new Json(of.text);
  const written = json.member("ttl");
  const counts = told.class === "explicit" || told.class === "never";
  const idle = written !== undefined && (told.defaultTtl === null || !counts);
  return (
    <div class={idle ? "why idle" : "why"}>
      <Icon name="clock" />
      <div>
        <p>
          {told.state === "live" ? (
            <>
              Expires: <strong><Countdown at={expiresAt} /></strong>
              {expiresAt !== null && <span class="soft"> · {moment(expiresAt)} UTC</span>}
            </>
          ) : (
            <strong>{told.state === "expired" ? "Expired" : "Not there"}</strong>
          )}
        </p>
        <p>{told.reason}</p>
        {idle && (
          <p class="warn-text">
            Its ttl of <code>{json.raw(written)}</code> counts for nothing
            {told.defaultTtl === null ? " while time to live is off in this container." : "."}
          </p>
        )}
      </div>
    </div>
  );
}

/** What the server added: to look at, not to change. */
function System({ of }: { of: Stored }) {
  const json = new Json(of.text);
  if (json.root.kind !== "object") return null;
  const members = json.root.members.filter((member) => isSystem(member.name));
  return (
    <details class="system">
      <summary>System properties</summary>
      <pre tabIndex={0}>
        {members.map((member) => `${member.written}: ${json.raw(member.value)}`).join("\n")}
      </pre>
    </details>
  );
}
