// What expires when, as bars.

import { useSignal } from "@preact/signals";
import { askFor } from "./api";
import { beat } from "./clock";
import { epoch, type Count } from "./live";
import { figures, type Spot } from "./place";
import { Choice, Failure, Field, useAsked } from "./ui";
import { bytes, count, counted, exact, moment, seconds, short, timeOfDay } from "./words";

interface Bucket extends Count {
  from: number;
  to: number;
  explicitItems: number;
}

interface Told {
  now: number;
  buckets: Bucket[];
  later: Count;
  never: Count;
}

type Width = "minute" | "hour" | "day" | "own";

const SHAPES: Record<Exclude<Width, "own">, { buckets: number; seconds: number }> = {
  minute: { buckets: 60, seconds: 60 },
  hour: { buckets: 48, seconds: 3600 },
  day: { buckets: 60, seconds: 86400 },
};

const OWN_BUCKETS = 48;
const EVERY = 5;

export function Forecast({ at, turn }: { at: Spot; turn: number }) {
  const width = useSignal<Width>("minute");
  const own = useSignal("10");
  const value = seconds(own.value, OWN_BUCKETS);
  const shape =
    width.value !== "own"
      ? SHAPES[width.value]
      : { buckets: OWN_BUCKETS, seconds: typeof value === "number" ? value / OWN_BUCKETS : 10 };
  const query = `buckets=${shape.buckets}&bucketSeconds=${shape.seconds}`;
  const asked = useAsked<Told>(
    (abort) => askFor<Told>(`${figures(at)}/ttl/forecast?${query}`, { abort, watch: true }),
    [at.database, at.container, query, turn, epoch.value, Math.floor(beat.value / EVERY)],
  );
  const of = asked.value.value;
  return (
    <section class="forecast" aria-label="Forecast">
      <header class="row">
        <h2>What expires when</h2>
        <span class="space" />
        <Choice<Width>
          label="Width of a bar"
          value={width.value}
          options={[
            ["minute", "by minute"],
            ["hour", "by hour"],
            ["day", "by day"],
            ["own", "own width"],
          ]}
          onChange={(next) => (width.value = next)}
        />
        {width.value === "own" && (
          <Field label="Seconds of a bar" error={typeof value === "string" ? value : null}>
            {(ids) => (
              <input
                {...ids}
                class="input narrow"
                inputMode="numeric"
                autocomplete="off"
                value={own.value}
                onInput={(event) => (own.value = event.currentTarget.value)}
              />
            )}
          </Field>
        )}
      </header>
      <Failure of={asked.error.value} />
      {of && <Bars of={of} seconds={shape.seconds} />}
      {of && <InWords of={of} seconds={shape.seconds} />}
    </section>
  );
}

const HEIGHT = 140;
const STEP = 12;

function Bars({ of, seconds: width }: { of: Told; seconds: number }) {
  const most = of.buckets.reduce((top, bucket) => Math.max(top, bucket.items), 0);
  const scale = (items: number) => (most === 0 ? 0 : (items / most) * HEIGHT);
  const total = of.buckets.length * STEP;
  const time = (second: number) => (width < 86400 ? timeOfDay(second).slice(0, width < 60 ? 8 : 5) : moment(second).slice(5, 10));
  const middle = of.buckets[Math.floor(of.buckets.length / 2)];
  const last = of.buckets.at(-1);
  return (
    <div class="bars">
      <span class="most soft" aria-hidden="true">{short(most)}</span>
      <svg
        viewBox={`0 0 ${total} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Bars of ${exact(width)} each; the highest has ${counted(most, "item")}.`}
      >
        {of.buckets.map((bucket, at) => {
          const all = scale(bucket.items);
          const explicit = scale(bucket.explicitItems);
          return (
            bucket.items > 0 && (
              <g key={at} data-items={bucket.items} data-explicit={bucket.explicitItems}>
                <rect class="own" x={at * STEP + 1} width={STEP - 2} y={HEIGHT - explicit} height={explicit} />
                <rect class="default" x={at * STEP + 1} width={STEP - 2} y={HEIGHT - all} height={all - explicit} />
                <rect class="hit" x={at * STEP} width={STEP} y={0} height={HEIGHT}>
                  <title>
                    {`${moment(bucket.from)} to ${time(bucket.to)}: ${counted(bucket.items, "item")}, ` +
                      `${count(bucket.explicitItems)} by a ttl of their own (${bytes(bucket.bytes)})`}
                  </title>
                </rect>
              </g>
            )
          );
        })}
      </svg>
      <div class="axis soft" aria-hidden="true">
        <span>now</span>
        {middle && <span>{time(middle.from)}</span>}
        {last && <span>{time(last.to)}</span>}
      </div>
    </div>
  );
}

function InWords({ of, seconds: width }: { of: Told; seconds: number }) {
  const sum = of.buckets.reduce((total, bucket) => total + bucket.items, 0);
  const explicit = of.buckets.reduce((total, bucket) => total + bucket.explicitItems, 0);
  return (
    <p class="legend">
      <span class="key own" /> by a ttl of their own: {count(explicit)} <span class="key default" /> by the default:{" "}
      {count(sum - explicit)} <span class="soft">·</span> within {exact(width * of.buckets.length)}:{" "}
      <strong>{count(sum)}</strong> <span class="soft">·</span> later: <strong>{count(of.later.items)}</strong>{" "}
      <span class="soft">·</span> never: <strong>{count(of.never.items)}</strong>
    </p>
  );
}
