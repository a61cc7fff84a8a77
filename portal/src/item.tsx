// One item: its text to edit, and beside it why it lives and until when.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { second } from "./clock";
import { Conflict } from "./conflict";
import { keep, kept, placeOf } from "./drafts";
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
import { Button, copy, Countdown, Dialog, Empty, Failure, Icon, Note, say, useAsked, useTask } from "./ui";
import { moment } from "./words";
import { keyShown, rowKey } from "./rows";

interface Props {
  at: Spot;
  /** Null: a new one. */
  item: Ref | null;
  /** Null, as long as the container's definition is not known. */
  paths: readonly string[] | null;
  changed: () => void;
  close: () => void;
}

/** The text that people edit: without what is the server's. */
function own(item: Stored): string {
  return without(new Json(item.text), isSystem);
}

/** What was written here and not saved, and over which version. */
interface Draft {
  text: string;
  base: Stored | null;
}

export function Item(props: Props) {
  const { at, item, close } = props;
  const name = placeOf(at, item ? rowKey(item) : "new");
  // What is typed later is a draft, too; this is one that was there before.
  const draft = useRef(kept<Draft>(name)).current;
  const asked = useAsked((abort) => (item ? readItem(at, item, abort) : Promise.resolve(null)), []);
  const found = asked.value.value;
  const failure = asked.error.value;
  // A container that is gone leaves what is open as it is.
  const paths = useRef<readonly string[] | null>(null);
  paths.current = props.paths ?? paths.current ?? (draft ? [] : null);
  if (asked.busy.value || (!paths.current && !failure)) return <aside class="pane" aria-label="Item" />;
  return (
    <aside class="pane" aria-label="Item">
      <Failure of={failure} />
      {draft || found || (!item && !failure) ? (
        <Open {...props} paths={paths.current ?? []} found={found} draft={draft} name={name} />
      ) : failure ? (
        <Button onClick={close}>Close</Button>
      ) : (
        <Empty>
          This item is not there: it has expired, or was deleted.{" "}
          <Button onClick={close}>Close</Button>
        </Empty>
      )}
    </aside>
  );
}

function template(paths: readonly string[]): string {
  const names = paths.filter((path) => /^\/[^/]+$/.test(path) && path !== "/id").map((path) => path.slice(1));
  const members = names.map((name) => `  ${JSON.stringify(name)}: ""`);
  return `{\n${['  "id": ""', ...members].join(",\n")}\n}`;
}

interface OpenProps extends Props {
  paths: readonly string[];
  found: Stored | null;
  draft: Draft | undefined;
  /** Where its draft is kept. */
  name: string;
}

/** An item that is open: what is known of it, and what can be done with it. */
function useItem({ at, item, found, draft, name, paths, changed, close }: OpenProps) {
  const base = useSignal(draft ? draft.base : found);
  // With one of these texts there is nothing to save.
  const same = useRef([base.peek() ? own(base.peek()!) : template(paths)]);
  const text = useRef(draft?.text ?? same.current[0]!);
  const dirty = useSignal(draft !== undefined);
  const restored = useSignal(draft !== undefined);
  const isGone = useSignal(item !== null && found === null);
  const other = useSignal<Stored | null>(null);
  const handle = useRef<Handle | null>(null);
  const task = useTask();
  useEffect(
    () => () => {
      if (dirty.peek()) say("What you wrote is not saved. It is kept where you wrote it.");
    },
    [],
  );

  const typed = (now: string) => {
    text.current = now;
    dirty.value = !same.current.includes(now);
    if (!dirty.value) restored.value = false;
    keep(name, dirty.value ? { text: now, base: base.peek() } : null);
  };
  const put = (next: string) => {
    text.current = next;
    handle.current?.replace(next);
    typed(next);
  };
  /** The item is this now, by the text that was sent; without one, the text follows the item. */
  const take = (now: Stored, sent: string | null) => {
    const before = base.peek();
    base.value = now;
    other.value = null;
    isGone.value = false;
    same.current = sent === null ? [own(now)] : [own(now), sent];
    if (sent === null) put(own(now));
    else typed(text.current);
    if (now.id !== before?.id) {
      // What was typed meanwhile goes to where the item is from now on.
      keep(name, null);
      if (dirty.peek()) keep(placeOf(at, rowKey(now)), { text: text.current, base: now });
      set({ id: now.id, pk: now.partitionKey, new: null });
    }
    changed();
  };
  const save = () =>
    task.run(async () => {
      if (readOnly.peek()) return;
      const written = text.current;
      const json = read(written);
      if (!(json instanceof Json)) throw new Error(`This is no JSON: ${json.message}`);
      if (json.root.kind !== "object") throw new Error("An item is an object.");
      const place = half(written);
      if (place !== undefined) {
        throw new Error(`${HALF} It stands in line ${written.slice(0, place).split("\n").length}.`);
      }
      const sent = withoutSystem(written);
      const known = base.peek();
      if (!known || isGone.peek()) {
        take(await createItem(at, sent, paths), written);
        say("Created.");
        return;
      }
      const outcome = await saveItem(at, known, sent, known.etag);
      if (outcome.kind === "saved") {
        take(outcome.item, written);
        say(outcome.item.ignored ? "Saved. Its ttl counts for nothing here." : "Saved.");
      } else if (outcome.kind === "changed") other.value = outcome.now;
      else isGone.value = true;
    });
  const renew = (ttl: number | "keep" | "none", done: string) =>
    task.run(async () => {
      const known = base.peek();
      if (!known) return;
      // Over the version that is open. Another one is written anew only if nothing is being
      // written here: else the next save would wipe out a change that nobody has seen.
      const outcome = await rewrite(at, known, ttl, () => !dirty.peek());
      if (outcome.kind === "gone") {
        isGone.value = true;
        return;
      }
      if (outcome.kind === "changed" || (dirty.peek() && outcome.over !== known.etag)) {
        other.value = outcome.kind === "changed" ? outcome.now : outcome.item;
        return;
      }
      if (!dirty.peek()) take(outcome.item, null);
      else {
        // What is being written stays; only its ttl follows.
        take(outcome.item, own(outcome.item));
        if (ttl !== "keep" && read(text.current) instanceof Json) {
          put(indented(new Json(withMember(text.current, "ttl", ttl === "none" ? undefined : String(ttl)))));
        }
      }
      say(done);
    });
  const remove = async () => {
    const known = base.peek();
    if (!known) return;
    if ((await deleteItem(at, known, known.etag)) === "changed") {
      other.value = await readItem(at, known);
      isGone.value = other.peek() === null;
      return;
    }
    keep(name, null);
    dirty.value = false;
    say(`${known.id} is deleted.`);
    changed();
    close();
  };
  const drop = () => {
    const now = found ?? base.peek();
    if (now && now.etag !== base.peek()?.etag) take(now, null);
    else put(now ? own(now) : template(paths));
  };
  return { base, text, dirty, restored, isGone, other, handle, task, take, save, renew, remove, drop, typed };
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

function Open(props: OpenProps) {
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
        takeTheirs={() => item.take(theirs, null)}
        goOn={() => (other.value = null)}
      />
    );
  }
  return (
    <>
      <header class="pane-head">
        <h2 class="breaks">{of ? of.id : "New item"}</h2>
        {of && <span class="soft mono">{keyShown(of.partitionKey)}</span>}
        {item.dirty.value && <span class="badge amber">unsaved</span>}
        <span class="space" />
        <Button kind="quiet" icon="close" label="Close the item" onClick={props.close} />
      </header>
      {of && <Why told={told} of={of} expiresAt={told?.expiresAt ?? null} />}
      {item.restored.value && (
        <Note>
          What you wrote here before and did not save is back. <Button onClick={item.drop}>Drop it</Button>
        </Note>
      )}
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
  const asksDelete = useSignal(false);
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
          <Button kind="danger" icon="trash" label="Delete the item" onClick={() => (asksDelete.value = true)} />
        </>
      )}
      {asksDelete.value && base.value && (
        <Dialog title={`Delete the item ${base.value.id}?`} close={() => (asksDelete.value = false)}>
          <p>This cannot be taken back. If somebody has changed it since it was opened here, it stays.</p>
          <footer>
            <Button onClick={() => (asksDelete.value = false)}>Cancel</Button>
            <Button
              kind="danger"
              onClick={() => {
                asksDelete.value = false;
                task.run(remove);
              }}
            >
              Delete it
            </Button>
          </footer>
        </Dialog>
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
