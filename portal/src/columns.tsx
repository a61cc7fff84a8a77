// Which fields of the items are columns.

import { useSignal } from "@preact/signals";
import { current } from "./live";
import type { Spot } from "./place";
import { chooseFields, chosenFields, fields, FIELDS_MAX, keyFields, type Row } from "./rows";
import { Button, Dialog, Field } from "./ui";

interface Props {
  at: Spot;
  rows: readonly Row[];
  changed: () => void;
}

export function Columns({ at, rows, changed }: Props) {
  const open = useSignal(false);
  const own = useSignal("");
  const close = () => (open.value = false);
  // The same that are shown as long as nobody has chosen.
  const candidates = fields(rows, keyFields(current.value?.partitionKeyPaths ?? []));
  const chosen = chosenFields(at) ?? candidates.slice(0, 3);
  const all = [...new Set([...chosen, ...candidates])].slice(0, 40);
  const choose = (next: string[] | null) => {
    chooseFields(at, next);
    changed();
  };
  const add = (event: Event) => {
    event.preventDefault();
    const path = own.peek().trim().replace(/^c[./]/, "").replaceAll(".", "/");
    if (path && !chosen.includes(path)) choose([...chosen, path].slice(0, FIELDS_MAX));
    own.value = "";
  };
  return (
    <>
      <Button onClick={() => (open.value = true)}>Columns</Button>
      {open.value && (
        <Dialog title="Columns" close={close}>
          <p class="soft">
            Up to {FIELDS_MAX} fields. id, key, _ts, ttl and the time left are always there.
          </p>
          <ul class="checks">
            {all.map((path) => (
              <li key={path}>
                <label class="option">
                  <input
                    type="checkbox"
                    checked={chosen.includes(path)}
                    disabled={!chosen.includes(path) && chosen.length >= FIELDS_MAX}
                    onChange={(event) =>
                      choose(
                        event.currentTarget.checked ? [...chosen, path] : chosen.filter((of) => of !== path),
                      )
                    }
                  />
                  <span class="mono">{path}</span>
                </label>
              </li>
            ))}
          </ul>
          <form class="ttl-number" onSubmit={add}>
            <Field label="A field within a field" hint="Such as cart/total.">
              {(ids) => (
                <input
                  {...ids}
                  class="input mono"
                  autocomplete="off"
                  spellcheck={false}
                  value={own.value}
                  onInput={(event) => (own.value = event.currentTarget.value)}
                />
              )}
            </Field>
            <Button type="submit" disabled={own.value.trim() === "" || chosen.length >= FIELDS_MAX}>
              Add
            </Button>
          </form>
          <footer>
            <Button onClick={() => choose(null)}>As at first</Button>
            <Button kind="primary" onClick={close}>
              Done
            </Button>
          </footer>
        </Dialog>
      )}
    </>
  );
}
