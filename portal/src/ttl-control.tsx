// Choosing a default time to live: off, on without a default, or a number with a unit.

import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { Field, Select } from "./ui";
import { count, exact, seconds } from "./words";

/** What was chosen: null is off, -1 on without a default. */
export interface Chosen {
  ttl: number | null;
  error: string | null;
}

type Mode = "off" | "none" | "on";

const UNITS = [
  ["1", "seconds"],
  ["60", "minutes"],
  ["3600", "hours"],
  ["86400", "days"],
] as const;

type Unit = (typeof UNITS)[number][0];

/** The greatest unit in which a number of seconds is whole. */
export function unitOf(ttl: number): Unit {
  return UNITS.findLast(([size]) => ttl % Number(size) === 0)?.[0] ?? "1";
}

interface Props {
  label: string;
  initial: number | null;
  onChange: (chosen: Chosen) => void;
}

/** Give it a key that changes with `initial`, if that is to be taken over. */
export function TtlControl({ label, initial, onChange }: Props) {
  const group = useId();
  const mode = useSignal<Mode>(initial === null ? "off" : initial === -1 ? "none" : "on");
  const unit = useSignal<Unit>(initial !== null && initial > 0 ? unitOf(initial) : "1");
  const text = useSignal(initial !== null && initial > 0 ? String(initial / Number(unit.peek())) : "");
  const number = seconds(text.value, Number(unit.value));
  const error = mode.value === "on" && typeof number === "string" ? number : null;
  const tell = () => {
    const value = seconds(text.peek(), Number(unit.peek()));
    if (mode.peek() === "off") onChange({ ttl: null, error: null });
    else if (mode.peek() === "none") onChange({ ttl: -1, error: null });
    else if (typeof value === "number") onChange({ ttl: value, error: null });
    else onChange({ ttl: null, error: value });
  };
  const choose = (next: Mode) => {
    mode.value = next;
    tell();
  };
  const option = (of: Mode, name: string, hint: string) => (
    <label class="option" key={of}>
      <input
        type="radio"
        name={group}
        value={of}
        checked={mode.value === of}
        onChange={() => choose(of)}
      />
      <span>
        {name} <span class="soft">{hint}</span>
      </span>
    </label>
  );
  return (
    <fieldset class="ttl-control">
      <legend>{label}</legend>
      {option("off", "Off", "nothing expires, whatever an item's ttl says")}
      {option("none", "No default", "only items with a ttl of their own expire")}
      {option("on", "On", "items expire so long after their last write")}
      {mode.value === "on" && (
        <div class="ttl-number">
          <Field
            label="Time to live"
            error={text.value === "" ? null : error}
            hint={typeof number === "number" ? `${count(number)} s, ${exact(number)}` : "From 1 second to about 68 years."}
          >
            {(ids) => (
              <input
                {...ids}
                class="input"
                inputMode="numeric"
                autocomplete="off"
                value={text.value}
                        onInput={(event) => {
                  text.value = event.currentTarget.value;
                  tell();
                }}
              />
            )}
          </Field>
          <Select
            label="Unit"
            value={unit.value}
            options={UNITS}
                onChange={(next) => {
              unit.value = next;
              tell();
            }}
          />
        </div>
      )}
    </fieldset>
  );
}
