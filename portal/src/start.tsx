// The start page: how to connect, and how the server does.

import { useSignal } from "@preact/signals";
import { containers, databases, epoch, known, lastSecond } from "./live";
import { beat } from "./clock";
import { creation } from "./creation";
import { loadSample } from "./sample";
import { go } from "./place";
import { admin, readOnly, server, type Server } from "./session";
import { ask } from "./api";
import { Snippets } from "./snippets";
import { Button, copy, Empty, Failure, lazy, useAsked, useTask } from "./ui";
import { bytes, count, duration, figure, moment } from "./words";
import { emulatorKey } from "./known";

const Chart = lazy(() => import("./chart").then((module) => module.Chart));

export function Start() {
  const of = server.value;
  if (!of) return null;
  return (
    <section class="page start">
      <header class="head">
        <h1>dayfly</h1>
        <span class="soft">
          {of.version} · {of.place === "memory" ? "in memory, gone when the server stops" : "on disk"}
          {of.place === "folder" && `, durability ${of.durability}`} · up <Uptime of={of} /> · as {of.by}
        </span>
      </header>
      {known.value && databases.value.length === 0 && <Welcome />}
      <Figures />
      <Activity />
      <Connect of={of} />
    </section>
  );
}

function Uptime({ of }: { of: Server }) {
  const since = useSignal({ beat: beat.peek(), of });
  if (since.peek().of !== of) since.value = { beat: beat.peek(), of };
  return <>{duration(of.uptimeSeconds + beat.value - since.value.beat)}</>;
}

function Welcome() {
  const task = useTask();
  const done = useSignal(0);
  if (readOnly.value) return <Empty>The server is empty.</Empty>;
  const load = () =>
    task.run(async () => {
      await loadSample((part) => (done.value = part));
      go(["c", "sample", "sessions", "items"], { order: "expiry" });
    });
  return (
    <div class="welcome">
      <p>
        <strong>The server is empty.</strong> Create a database, connect with an SDK, or look around in a
        sample: 1,000 sessions, of which some die within minutes, some in days, some never.
      </p>
      <div class="row">
        <Button kind="primary" disabled={task.busy.value} onClick={load}>
          {task.busy.value ? `Loading… ${Math.round(done.value * 100)} %` : "Load a sample"}
        </Button>
        <Button icon="plus" onClick={() => (creation.value = { what: "database" })}>
          New database
        </Button>
      </div>
      <Failure of={task.error.value} />
    </div>
  );
}

/** Figures of all containers together. */
function Figures() {
  const all = containers.value;
  const sum = (what: (of: (typeof all)[number]) => number) => all.reduce((total, of) => total + what(of), 0);
  const backlog = sum((of) => of.backlog.items);
  return (
    <dl class="figures">
      <Figure name="Containers" value={count(all.length)} />
      <Figure name="Live items" value={count(sum((of) => of.live.items))} />
      <Figure name="Size" value={bytes(sum((of) => of.live.bytes))} />
      <Figure name="Never expire" value={count(sum((of) => of.never.items))} />
      <Figure name="Expired, not purged" value={count(backlog)} warn={all.some((of) => of.isLagging)} />
      <Figure name="Requests/s" value={count(lastSecond.value?.requests ?? 0)} />
      <Figure name="RU/s" value={figure(lastSecond.value?.charge ?? 0)} />
    </dl>
  );
}

export function Figure({ name, value, warn = false }: { name: string; value: string; warn?: boolean }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class={warn ? "warn-text" : undefined}>{value}</dd>
    </div>
  );
}

interface Series {
  now: number;
  seconds: number;
  requests: number[];
  charge: number[];
  errors: number[];
  expired: number[];
  purged: number[];
}

const EVERY = 5;

/** What happened in the last quarter of an hour. */
function Activity() {
  const turn = Math.floor(beat.value / EVERY);
  const asked = useAsked<Series | null>(
    async (abort) => {
      const answer = await ask(`${admin}series`, { abort, takes: [404] });
      return answer.status === 404 ? null : (JSON.parse(answer.text) as Series);
    },
    [turn, epoch.value],
  );
  const of = asked.value.value;
  if (!of) return asked.error.value ? <Failure of={asked.error.value} /> : asked.busy.value ? <div class="charts" /> : null;
  const charts = [
    { name: "Requests and errors per second", lines: [of.requests, of.errors], names: ["requests", "errors"], kinds: ["main", "bad"] },
    { name: "Charge, RU per second", lines: [of.charge], names: ["RU"], kinds: ["main"] },
    { name: "Expired and purged per second", lines: [of.expired, of.purged], names: ["expired", "purged"], kinds: ["amber", "soft"] },
  ];
  return (
    <div class="charts" aria-label="The last 15 minutes">
      {charts.map((chart) => (
        <figure key={chart.name}>
          <figcaption>{chart.name}</figcaption>
          <Chart now={of.now} seconds={of.seconds} lines={chart.lines} names={chart.names} kinds={chart.kinds} />
        </figure>
      ))}
    </div>
  );
}

function Connect({ of }: { of: Server }) {
  const key = of.wellKnownKey ? emulatorKey : "<your key>";
  const hosts = of.endpoints.length > 0 ? of.endpoints : [{ scheme: "http", url: location.origin + "/" }];
  return (
    <div class="connect">
      <h2>Connect</h2>
      {hosts.map(({ scheme, url }) => {
        const text = `AccountEndpoint=${url};AccountKey=${key};`;
        return (
          <div class="string" key={url}>
            <span class="badge">{scheme}</span>
            <code>{text}</code>
            <Button kind="quiet" onClick={() => void copy(text, "Connection string")}>
              Copy
            </Button>
          </div>
        );
      })}
      {of.certificate && (
        <p class="soft">
          Certificate: <a href={of.certificate.path}>emulator.pem</a>, good until{" "}
          {moment(of.certificate.endsAt).slice(0, 10)}, SHA-256{" "}
          <span class="mono breaks">{of.certificate.sha256}</span>
        </p>
      )}
      <Snippets endpoints={hosts} wellKnown={of.wellKnownKey} />
    </div>
  );
}
