// Giving items a ttl of their own.

import { useSignal } from "@preact/signals";
import { Button, Dialog, Field, Select } from "./ui";
import { count, exact, seconds } from "./words";

interface Props {
  close: () => void;
  act: (ttl: number | "none") => void;
}

export function SetTtl({ close, act }: Props) {
  const mode = useSignal<"number" | "never" | "none">("number");
  const text = useSignal("");
  const unit = useSignal("1");
  const value = seconds(text.value, Number(unit.value));
  const ready = mode.value !== "number" || typeof value === "number";
  const submit = (event: Event) => {
    event.preventDefault();
    if (mode.peek() === "never") act(-1);
    else if (mode.peek() === "none") act("none");
    else if (typeof value === "number") act(value);
  };
  return (
    <Dialog title="Set ttl" close={close}>
      <form class="stack" onSubmit={submit}>
        <Select
          label="What the items get"
          value={mode.value}
          options={[
            ["number", "a ttl of their own"],
            ["never", "ttl -1: never expire"],
            ["none", "no ttl: the container's default"],
          ]}
          onChange={(next) => (mode.value = next)}
        />
        {mode.value === "number" && (
          <div class="ttl-number">
            <Field
              label="Time to live"
              error={text.value !== "" && typeof value === "string" ? value : null}
              hint={typeof value === "number" ? `${count(value)} s, ${exact(value)}, from this write on` : "Counted from this write on."}
            >
              {(ids) => (
                <input
                  {...ids}
                  class="input"
                  inputMode="numeric"
                  autocomplete="off"
                  data-focus
                  value={text.value}
                  onInput={(event) => (text.value = event.currentTarget.value)}
                />
              )}
            </Field>
            <Select
              label="Unit"
              value={unit.value}
              options={[
                ["1", "seconds"],
                ["60", "minutes"],
                ["3600", "hours"],
                ["86400", "days"],
              ]}
              onChange={(next) => (unit.value = next)}
            />
          </div>
        )}
        <footer>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={!ready}>
            Set
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
