// What became of a container's throughput, second by second.

import { useSignal } from "@preact/signals";
import { ask, askFor } from "./api";
import { beat } from "./clock";
import type { ScreenProps } from "./container";
import { epoch } from "./live";
import { figures } from "./place";
import { readOnly } from "./session";
import { Figure } from "./start";
import { Button, Choice, Empty, Failure, lazy, useAsked, useTask } from "./ui";
import { count, figure } from "./words";

const Chart = lazy(() => import("./chart").then((module) => module.Chart));

interface Second {
  second: number;
  provisioned: number;
  used: number;
  overflow: number;
  purge: number;
  throttled: number;
}

interface Told {
  owner: "container" | "database" | null;
  mode: "enforced" | "measured";
  provisioned: number | null;
  autoscale: boolean;
  highest: number;
  scaledTo: number;
  ranges: { range: string | null; rate: number; level: number }[];
  leftOver: number;
  buckets: { id: number; maxThroughputPercentage: number }[];
  total: { used: number; overflow: number; purge: number; throttled: number };
  seconds: Second[];
}

type Span = "60" | "900" | "3600";

export function Throughput({ at }: ScreenProps) {
  const span = useSignal<Span>("60");
  const turn = useSignal(0);
  const asked = useAsked<Told | null>(
    async (abort) => {
      const answer = await ask(`${figures(at)}/throughput?seconds=${span.peek()}`, { abort, takes: [404], watch: true });
      return answer.status === 404 ? null : (JSON.parse(answer.text) as Told);
    },
    [at.database, at.container, span.value, turn.value, epoch.value, Math.floor(beat.value / 2)],
  );
  const of = asked.value.value;
  if (asked.error.value) return <Failure of={asked.error.value} />;
  if (!of || of.owner === null || of.provisioned === null) {
    if (asked.busy.value && !of) return null;
    return (
      <Empty>
        No throughput is set for this container or for its database, so nothing is metered and nobody is throttled.
      </Empty>
    );
  }
  const seconds = Number(span.value);
  return (
    <div class="throughput">
      <dl class="figures">
        <Figure name={of.autoscale ? "RU/s at most" : "RU/s"} value={count(of.provisioned)} />
        {of.autoscale && <Figure name="Scaled to" value={count(of.scaledTo)} />}
        <Figure name="Highest of the last hour" value={figure(of.highest)} />
        <Figure name="Left over" value={figure(of.leftOver)} />
        <Figure name="Used in all" value={figure(of.total.used)} />
        <Figure name="Spent by the purge" value={figure(of.total.purge)} />
        <Figure name="Throttled requests" value={count(of.total.throttled)} warn={of.total.throttled > 0} />
      </dl>
      <div class="row">
        <Mode at={at} of={of} done={() => void turn.value++} />
        <span class="space" />
        <Choice<Span>
          label="Span"
          value={span.value}
          options={[
            ["60", "1 min"],
            ["900", "15 min"],
            ["3600", "1 h"],
          ]}
          onChange={(next) => (span.value = next)}
        />
      </div>
      <Charts of={of} seconds={seconds} />
      <Ranges of={of} />
    </div>
  );
}

function Mode({ at, of, done }: ScreenProps & { of: Told; done: () => void }) {
  const task = useTask();
  const enforced = of.mode === "enforced";
  const change = () =>
    task.run(async () => {
      const mode = enforced ? "measured" : "enforced";
      await askFor(`${figures(at)}/throughput`, { verb: "PUT", body: JSON.stringify({ mode }) });
      done();
    });
  return (
    <>
      <span class={enforced ? "badge amber" : "badge"}>{enforced ? "enforced" : "not enforced"}</span>
      <span class="soft">
        {enforced
          ? "Requests that ask for more are refused with 429."
          : "It is measured, and nobody is refused; throttled are those that would have been."}
        {of.owner === "database" && " It is the database's, and shared."}
      </span>
      {!readOnly.value && (
        <Button disabled={task.busy.value} onClick={change}>
          {enforced ? "Only measure" : "Enforce until the restart"}
        </Button>
      )}
      <Failure of={task.error.value} />
    </>
  );
}

function Charts({ of, seconds }: { of: Told; seconds: number }) {
  const { now, line } = filled(of.seconds, seconds);
  const charts = [
    { name: "Used and provisioned, RU per second", lines: [line("used"), line("provisioned")], names: ["used", "provisioned"], kinds: ["main", "soft"] },
    { name: "Left over, and spent of it by the purge, RU per second", lines: [line("overflow"), line("purge")], names: ["left over", "purge"], kinds: ["blue", "amber"] },
    { name: "Throttled requests per second", lines: [line("throttled")], names: ["throttled"], kinds: ["bad"] },
  ];
  return (
    <div class="charts">
      {charts.map((chart) => (
        <figure key={chart.name + seconds}>
          <figcaption>{chart.name}</figcaption>
          <Chart now={now} seconds={seconds} lines={chart.lines} names={chart.names} kinds={chart.kinds} />
        </figure>
      ))}
    </div>
  );
}

/** Seconds that nothing is told of are those in which nothing was used. */
function filled(told: readonly Second[], seconds: number) {
  const now = told.reduce((last, { second }) => Math.max(last, second), 0);
  const by = new Map(told.map((of) => [of.second, of]));
  const line = (name: Exclude<keyof Second, "second">) =>
    Array.from({ length: seconds }, (_, at) => by.get(now - seconds + 1 + at)?.[name] ?? 0);
  return { now, line };
}

const SHOWN = 24;

function Ranges({ of }: { of: Told }) {
  return (
    <div class="scroll">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Range</th>
            <th scope="col" class="num">
              RU/s
            </th>
            <th scope="col" class="num">
              In the meter
            </th>
          </tr>
        </thead>
        <tbody>
          {of.ranges.slice(0, SHOWN).map((range, at) => (
            <tr key={at}>
              <td>{range.range ?? "all"}</td>
              <td class="num">{figure(range.rate)}</td>
              <td class={range.level <= 0 ? "num warn-text" : "num"}>{figure(range.level)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
