// CodeMirror, in a shadow root of its own: there it adopts its style sheets, and needs no inline
// styles that the page's policy would have to allow.

import {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
  type CompletionSource,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  StreamLanguage,
  syntaxHighlighting,
} from "@codemirror/language";
import { linter, lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { Compartment, EditorState, Prec, type Extension } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { half, HALF, JsonError, read } from "./json";
import { completions, sql } from "./sql";

export interface Wish {
  label: string;
  language: "json" | "sql" | "text";
  text: string;
  readOnly?: boolean;
  hint?: string;
  /** Names that may come after a dot, for queries. */
  names?: () => Promise<readonly string[]>;
  onChange?: (text: string) => void;
  /** Ctrl-S, or Ctrl-Enter. */
  onDone?: () => void;
}

export interface Handle {
  text(): string;
  replace(text: string): void;
  focus(): void;
  /** Underlines places, counted in UTF-16 units. */
  mark(places: readonly { from: number; to: number; message: string }[]): void;
  setReadOnly(readOnly: boolean): void;
  destroy(): void;
}

const theme = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", color: "var(--ink)", backgroundColor: "var(--field)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)", padding: "6px 0" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--soft)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--hover)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection": {
    backgroundColor: "var(--select)",
  },
  ".cm-matchingBracket": { backgroundColor: "var(--select)", outline: "none" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent)",
    color: "var(--on-accent)",
  },
  ".cm-completionDetail": { color: "inherit", fontStyle: "normal", opacity: "0.8" },
  ".cm-diagnostic": { fontFamily: "var(--sans)", fontSize: "13px" },
  ".cm-placeholder": { color: "var(--soft)" },
});

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--code-name)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: [tags.bool, tags.null, tags.atom], color: "var(--code-word)" },
  { tag: tags.keyword, color: "var(--code-word)", fontWeight: "600" },
  { tag: [tags.function(tags.variableName), tags.standard(tags.name)], color: "var(--code-call)" },
  { tag: tags.special(tags.variableName), color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
]);

/** Where a text stops being JSON that the server takes. */
function wrong(view: EditorView): Diagnostic[] {
  const text = view.state.doc.toString();
  if (text.trim() === "") return [];
  const told = read(text);
  const at = told instanceof JsonError ? told.at : half(text);
  if (at === undefined) return [];
  const message = told instanceof JsonError ? told.message : HALF;
  const from = Math.min(at, text.length);
  return [{ from, to: Math.min(from + 1, text.length), severity: "error", message }];
}

function language(wish: Wish): Extension[] {
  if (wish.language === "json") return [json(), linter(wrong, { delay: 300 }), lintGutter()];
  if (wish.language === "text") return [];
  const complete: CompletionSource = async (context) => completions(context, (await wish.names?.()) ?? []);
  return [StreamLanguage.define(sql), autocompletion({ override: [complete], icons: false }), lintGutter()];
}

/**
 * Text that is typed over a selection. The browser would do it with an inline style, so that what
 * comes looks like what was there; the page's policy refuses that, and the console says so.
 */
const typedOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { data, inputType } = event;
    const { from, to, empty } = view.state.selection.main;
    if (inputType !== "insertText" || data === null || empty || view.composing || view.state.readOnly) {
      return false;
    }
    const insert = () => view.state.update(view.state.replaceSelection(data), { userEvent: "input.type" });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handler) => handler(view, from, to, data, insert))) view.dispatch(insert());
    event.preventDefault();
    return true;
  },
});

/** Makes an editor in a place of the page. */
export function edit(place: HTMLElement, wish: Wish): Handle {
  const root = place.shadowRoot ?? place.attachShadow({ mode: "open" });
  const locked = new Compartment();
  const lock = (readOnly: boolean) => [EditorState.readOnly.of(readOnly), EditorView.editable.of(true)];
  const done = () => {
    wish.onDone?.();
    return true;
  };
  const state = EditorState.create({
    doc: wish.text,
    extensions: [
      // The same ends of lines in and out.
      EditorState.lineSeparator.of("\n"),
      Prec.highest(
        keymap.of([
          { key: "Mod-s", run: done, preventDefault: true },
          { key: "Mod-Enter", run: done },
          { key: "Tab", run: acceptCompletion },
        ]),
      ),
      typedOver,
      lineNumbers(),
      history(),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
      syntaxHighlighting(colours),
      theme,
      language(wish),
      locked.of(lock(wish.readOnly ?? false)),
      EditorView.contentAttributes.of({ "aria-label": wish.label }),
      wish.hint ? placeholder(wish.hint) : [],
      EditorView.updateListener.of((update) => {
        if (update.docChanged) wish.onChange?.(update.state.doc.toString());
      }),
    ],
  });
  const view = new EditorView({ state, parent: root, root });
  return {
    text: () => view.state.doc.toString(),
    replace: (text) =>
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 } }),
    focus: () => view.focus(),
    mark: (places) => {
      closeCompletion(view);
      view.dispatch(setDiagnostics(view.state, places.map((of) => found(view, of))));
    },
    setReadOnly: (readOnly) => view.dispatch({ effects: locked.reconfigure(lock(readOnly)) }),
    destroy: () => view.destroy(),
  };
}

function found(view: EditorView, of: { from: number; to: number; message: string }): Diagnostic {
  const end = view.state.doc.length;
  const from = Math.min(of.from, end);
  const to = Math.min(Math.max(of.to, from), end);
  return { from: from === to ? Math.max(0, from - 1) : from, to, severity: "error", message: of.message };
}
