// The small parts that all screens are made of.

import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren, ComponentType, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { sentence } from "./api";
import { beat, second } from "./clock";
import { duration, moment } from "./words";

export type Children = ComponentChildren;

const ICONS = {
  clock: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13ZM8 4v4l2.7 1.8",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9ZM10.3 10.3 14 14",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  trash: "M3 4.5h10M6.5 4V2.5h3V4M4.5 4.5l.6 9h5.8l.6-9M6.8 7v4M9.2 7v4",
  refresh: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
  database: "M3 4c0-1.1 2.2-2 5-2s5 .9 5 2v8c0 1.1-2.2 2-5 2s-5-.9-5-2V4Zm0 0c0 1.1 2.2 2 5 2s5-.9 5-2M3 8c0 1.1 2.2 2 5 2s5-.9 5-2",
  container: "M2.5 5 8 2.5 13.5 5v6L8 13.5 2.5 11V5Zm0 0L8 7.5 13.5 5M8 7.5v6",
  home: "M2.5 7.5 8 3l5.5 4.5M4 6.5V13h8V6.5",
  list: "M2.5 4h1M6 4h7.5M2.5 8h1M6 8h7.5M2.5 12h1M6 12h7.5",
  out: "M9.5 3H3.5v10h6M7 8h7M11.5 5.5 14 8l-2.5 2.5",
  play: "M4.5 3v10l8-5-8-5Z",
  down: "M4 6l4 4 4-4",
  left: "M10 3.5 5.5 8l4.5 4.5",
  right: "M6 3.5 10.5 8 6 12.5",
  warn: "M8 2 1.5 13.5h13L8 2Zm0 4.5v3.5M8 12v.1",
} as const;

export type IconName = keyof typeof ICONS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

interface ButtonProps {
  children?: Children;
  icon?: IconName;
  label?: string;
  title?: string | undefined;
  kind?: "plain" | "primary" | "danger" | "quiet" | undefined;
  disabled?: boolean | undefined;
  pressed?: boolean | undefined;
  type?: "button" | "submit";
  onClick?: ((event: MouseEvent) => unknown) | undefined;
}

export function Button({ children, icon, label, title, kind, disabled, pressed, type, onClick }: ButtonProps) {
  return (
    <button
      type={type ?? "button"}
      class={`button ${kind ?? "plain"}`}
      aria-label={label}
      title={title ?? label}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onClick}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

interface FieldProps {
  label: string;
  hint?: Children;
  error?: string | null | undefined;
  wide?: boolean;
  children: (ids: { id: string; "aria-describedby": string; "aria-invalid": boolean }) => JSX.Element;
}

/** A control with its name, a hint, and what is wrong with it. */
export function Field({ label, hint, error, wide, children }: FieldProps) {
  const id = useId();
  return (
    <div class={wide ? "field wide" : "field"}>
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": `${id}-hint`, "aria-invalid": Boolean(error) })}
      <div id={`${id}-hint`} class={error ? "hint wrong" : "hint"}>
        {error || hint}
      </div>
    </div>
  );
}

interface SelectProps<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
  disabled?: boolean;
}

/** A choice of few, with a name for those who do not see it. */
export function Select<T extends string>({ label, value, options, onChange, disabled }: SelectProps<T>) {
  return (
    <select
      class="select"
      aria-label={label}
      value={value}
      disabled={disabled}
      onChange={(event) => onChange(event.currentTarget.value as T)}
    >
      {options.map(([of, name]) => (
        <option value={of} key={of}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** A row of buttons of which one is pressed. */
export function Choice<T extends string>({ label, value, options, onChange }: SelectProps<T>) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([of, name]) => (
        <button type="button" key={of} aria-pressed={of === value} onClick={() => onChange(of)}>
          {name}
        </button>
      ))}
    </div>
  );
}

interface DialogProps {
  title: string;
  close: () => void;
  wide?: boolean;
  /** Whether Escape and the cross close it. */
  firm?: boolean;
  children: Children;
}

/** A dialog over the page; the browser keeps the focus in it. */
export function Dialog({ title, close, wide, firm, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const show = () => {
    const shown = dialog.current;
    if (shown && !shown.open) shown.showModal();
    // The attribute that is made for this complains in the console where something has the focus.
    shown?.querySelector<HTMLElement>("[data-focus]")?.focus();
  };
  // At once, so that what is typed right after goes in.
  useLayoutEffect(() => {
    const before = document.activeElement;
    show();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (!firm) close();
      }}
      onKeyDown={(event) => {
        // A second Escape would close it without asking us.
        if (event.key === "Escape" && (firm || event.target === event.currentTarget)) event.preventDefault();
      }}
      onClose={() => {
        // The browser asks once: what it closed after that is opened again, or gone for us too.
        if (firm) show();
        else close();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        {!firm && <Button kind="quiet" icon="close" label="Close" onClick={close} />}
      </header>
      {children}
    </dialog>
  );
}

/** Asks for a name before something that cannot be taken back. */
export function TypeTheName(props: {
  title: string;
  name: string;
  action: string;
  children: Children;
  close: () => void;
  act: () => Promise<void>;
}) {
  const typed = useSignal("");
  const task = useTask();
  const fits = typed.value === props.name;
  const submit = (event: Event) => {
    event.preventDefault();
    if (fits) task.run(props.act);
  };
  return (
    <Dialog title={props.title} close={props.close}>
      <form class="stack" onSubmit={submit}>
        {props.children}
        <Field label={`Type the name to confirm`} hint={<code>{props.name}</code>}>
          {(ids) => (
            <input
              {...ids}
              class="input"
              autocomplete="off"
              spellcheck={false}
              value={typed.value}
              onInput={(event) => (typed.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <Failure of={task.error.value} />
        <footer>
          <Button onClick={props.close}>Cancel</Button>
          <Button kind="danger" type="submit" disabled={!fits || task.busy.value}>
            {props.action}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

/** Something that is being done, and how it failed. */
export function useTask() {
  const busy = useSignal(false);
  const error = useSignal<string | null>(null);
  const run = async (what: () => Promise<void>) => {
    if (busy.peek()) return;
    busy.value = true;
    error.value = null;
    try {
      await what();
    } catch (failure) {
      error.value = sentence(failure);
    } finally {
      busy.value = false;
    }
  };
  return { busy, error, run: (what: () => Promise<void>) => void run(what) };
}

export function Failure({ of }: { of: string | null | undefined }) {
  return of ? (
    <p class="note bad" role="alert">
      <Icon name="warn" />
      <span>{of}</span>
    </p>
  ) : null;
}

export function Note({ kind = "info", children }: { kind?: "info" | "warn" | "bad"; children: Children }) {
  return (
    <div class={`note ${kind}`} role={kind === "info" ? "note" : "status"}>
      {kind !== "info" && <Icon name="warn" />}
      <span>{children}</span>
    </div>
  );
}

export function Empty({ children }: { children: Children }) {
  return <div class="empty">{children}</div>;
}

/** What was done, told at the edge of the page and to those who listen. */
const said = signal<{ text: string; at: number } | null>(null);

export function say(text: string): void {
  said.value = { text, at: performance.now() };
}

export function Said() {
  const told = said.value;
  // Goes with the beat that the page has anyway.
  const old = told && beat.value >= 0 && performance.now() - told.at > 6000;
  return (
    <div class="said" role="status" aria-live="polite">
      {told && !old && <span>{told.text}</span>}
    </div>
  );
}

/** How long something lives yet, by the server's clock. */
export function Countdown({ at }: { at: number | null }) {
  if (at === null) return <span class="soft">never</span>;
  const left = at - second.value;
  if (left <= 0) {
    return (
      <s class="left gone" title={`expired at ${moment(at)} UTC`}>
        0 s
      </s>
    );
  }
  return (
    <span class={left < 60 ? "left soon" : "left"} title={`${moment(at)} UTC`}>
      {duration(left)}
    </span>
  );
}

/** A screen of its own file, loaded when it is first looked at. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  const loaded = signal<ComponentType<P> | null>(null);
  const failed = signal<string | null>(null);
  const start = () => {
    failed.value = null;
    load().then(
      (component) => (loaded.value = component),
      (error: unknown) => (failed.value = sentence(error)),
    );
  };
  let started = false;
  return function Lazy(props: P) {
    if (!started) {
      started = true;
      start();
    }
    const Component = loaded.value;
    if (Component) return <Component {...props} />;
    if (failed.value === null) return <Empty>Loading…</Empty>;
    return (
      <Empty>
        This part of the page could not be loaded. If the server was upgraded, it has another page now:
        reload this one. <Button onClick={() => location.reload()}>Reload the page</Button>{" "}
        <Button onClick={start}>Try again</Button>
      </Empty>
    );
  };
}

/** Puts a text on the clipboard. */
export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied.`);
  } catch {
    say("The browser does not let this page write to the clipboard.");
  }
}

/** Gives a text to the browser as a file to keep. */
export function save(name: string, type: string, parts: string[]): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** What was asked for, when any of `deps` changes; an answer that came too late is dropped. */
export function useAsked<T>(what: (abort: AbortSignal) => Promise<T>, deps: readonly unknown[]) {
  const value = useSignal<T | null>(null);
  const error = useSignal<string | null>(null);
  const busy = useSignal(true);
  useEffect(() => {
    const abort = new AbortController();
    busy.value = true;
    what(abort.signal).then(
      (told) => {
        if (abort.signal.aborted) return;
        value.value = told;
        error.value = null;
        busy.value = false;
      },
      (failure: unknown) => {
        if (abort.signal.aborted) return;
        error.value = sentence(failure);
        busy.value = false;
      },
    );
    return () => abort.abort();
  }, deps);
  return { value, error, busy };
}
