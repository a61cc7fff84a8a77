// The place of an editor in a screen; the editor itself is loaded when it is first needed.

import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { Handle, Wish } from "./editor";

type Props = Wish & { handle?: { current: Handle | null }; class?: string };

/** What it begins with is taken once; later, by the handle. */
export function Editor(props: Props) {
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const plain = useRef<HTMLTextAreaElement>(null);
  const failed = useSignal(false);
  const attempt = useSignal(0);
  useEffect(() => {
    let made: Handle | null = null;
    let gone = false;
    import("./editor").then(
      ({ edit }) => {
        if (gone || !place.current) return;
        const { label, language, text, readOnly = false, hint } = latest.current;
        made = edit(place.current, {
          label,
          language,
          text,
          readOnly,
          ...(hint ? { hint } : {}),
          names: async () => (await latest.current.names?.()) ?? [],
          onChange: (now) => latest.current.onChange?.(now),
          onDone: () => latest.current.onDone?.(),
        });
        if (latest.current.handle) latest.current.handle.current = made;
      },
      () => (failed.value = true),
    );
    return () => {
      gone = true;
      made?.destroy();
      if (latest.current.handle) latest.current.handle.current = null;
    };
  }, [attempt.value]);
  useEffect(() => latest.current.handle?.current?.setReadOnly(props.readOnly ?? false), [props.readOnly]);
  useEffect(() => {
    if (failed.value && plain.current && latest.current.handle) {
      latest.current.handle.current = simple(plain.current, (now) => latest.current.onChange?.(now));
    }
  }, [failed.value]);
  return (
    <div class={`editor ${props.class ?? ""}`}>
      <div ref={place} class="editor-place" />
      {failed.value && (
        <textarea
          ref={plain}
          class="editor-plain"
          aria-label={props.label}
          readOnly={props.readOnly}
          onInput={(event) => props.onChange?.(event.currentTarget.value)}
        >
          {props.text}
        </textarea>
      )}
    </div>
  );
}

/** What can be done with a text area that stands for an editor that could not be loaded. */
function simple(area: HTMLTextAreaElement, changed: (text: string) => void): Handle {
  return {
    text: () => area.value,
    replace: (text) => {
      area.value = text;
      changed(text);
    },
    focus: () => area.focus(),
    mark: () => undefined,
    setReadOnly: (readOnly) => (area.readOnly = readOnly),
    destroy: () => undefined,
  };
}
