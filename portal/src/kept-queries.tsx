// Queries of before, and those with a name.

import { useSignal } from "@preact/signals";
import { cut } from "./json";
import { forget, forgetLast, kept, name } from "./queries-kept";
import type { Asked } from "./query-calls";
import { Button, Dialog, Field } from "./ui";

interface Props {
  asked: Asked;
  take: (of: Asked) => void;
  close: () => void;
}

const SHOWN = 30;

export function KeptQueries({ asked, take, close }: Props) {
  const own = useSignal("");
  const { last, named } = kept.value;
  const save = (event: Event) => {
    event.preventDefault();
    const as = own.peek().trim();
    if (as) name(asked, as);
    own.value = "";
  };
  return (
    <Dialog title="Kept queries" wide close={close}>
      <form class="ttl-number" onSubmit={save}>
        <Field label="Keep the query of the editor as">
          {(ids) => (
            <input
              {...ids}
              class="input"
              autocomplete="off"
              value={own.value}
              onInput={(event) => (own.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <Button type="submit" disabled={own.value.trim() === ""}>
          Keep
        </Button>
      </form>
      {named.length > 0 && <h3>With a name</h3>}
      <ul class="kept">
        {named.map((of) => (
          <li key={of.name} class="row">
            <button type="button" class="button quiet grow" onClick={() => take(of)}>
              <strong>{of.name}</strong> <code>{cut(of.query.replace(/\s+/g, " "), 90)}</code>
            </button>
            <Button kind="quiet" icon="trash" label={`Forget ${of.name}`} onClick={() => forget(of.name)} />
          </li>
        ))}
      </ul>
      {last.length > 0 && (
        <div class="row">
          <h3>Asked before</h3>
          <span class="space" />
          <Button kind="quiet" onClick={forgetLast}>
            Forget them
          </Button>
        </div>
      )}
      <ul class="kept">
        {last.slice(0, SHOWN).map((of, at) => (
          <li key={at}>
            <button type="button" class="button quiet grow" onClick={() => take(of)}>
              <code>{cut(of.query.replace(/\s+/g, " "), 110)}</code>
            </button>
          </li>
        ))}
      </ul>
      {last.length + named.length === 0 && <p class="soft">Queries that were run are kept here, in this browser.</p>}
    </Dialog>
  );
}
