// The last requests: what was asked, what it cost, and what is not supported yet.

import { useSignal } from "@preact/signals";
import { askFor } from "./api";
import { beat } from "./clock";
import { epoch } from "./live";
import { here, set } from "./place";
import { admin, server } from "./session";
import { Button, copy, Empty, Failure, Select, useAsked } from "./ui";
import { counted, figure, moment } from "./words";

interface Logged {
  number: number;
  at: number;
  operation: string;
  verb: string;
  path: string;
  channel?: string;
  status: number;
  substatus: number;
  charge: number;
  ms: number;
  activityId: string;
  query?: string;
  missing?: string;
}

interface Told {
  enabled: boolean;
  requests: Logged[];
}

const ROWS = 50;
const ALL = 1000;
const UUID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

export function Requests() {
  const { params } = here.value;
  const [status, verb, find] = [params.get("status") ?? "", params.get("verb") ?? "", params.get("find") ?? ""];
  const paused = useSignal(false);
  const turn = useSignal(0);
  const part = useSignal(0);
  const open = useSignal<number | null>(null);
  const tick = paused.value ? 0 : Math.floor(beat.value / 2);
  const asked = useAsked<Told>(
    (abort) => askFor<Told>(`${admin}requests?${query(status, verb, find)}`, { abort }),
    [status, verb, find, turn.value, epoch.value, tick],
  );
  const of = asked.value.value;
  const change = (next: Record<string, string | null>) => {
    part.value = 0;
    set(next);
  };
  const all = of?.requests ?? [];
  const parts = Math.max(1, Math.ceil(all.length / ROWS));
  const at = Math.min(part.value, parts - 1);
  return (
    <section class="page">
      <header class="head">
        <h1>Requests</h1>
        <span class="soft">the last 1,000, without bodies, keys and tokens</span>
      </header>
      <div class="toolbar">
        <input
          class="input find"
          type="search"
          aria-label="Part of the path, or an activity id"
          placeholder="Part of the path, or an activity id"
          value={find}
          onInput={(event) => change({ find: event.currentTarget.value })}
        />
        <Select
          label="Status"
          value={status}
          options={["", "2xx", "3xx", "4xx", "404", "409", "412", "429", "5xx", "501"].map((of) => [of, of || "any status"] as const)}
          onChange={(next) => change({ status: next })}
        />
        <Select
          label="Verb"
          value={verb}
          options={["", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"].map((of) => [of, of || "any verb"] as const)}
          onChange={(next) => change({ verb: next })}
        />
        <span class="space" />
        <Button pressed={paused.value} onClick={() => (paused.value = !paused.peek())}>
          {paused.value ? "Stands still" : "Hold still"}
        </Button>
        <Button kind="quiet" icon="refresh" label="Read again" onClick={() => void turn.value++} />
      </div>
      <Failure of={asked.error.value} />
      {server.value && of && !of.enabled && <Empty>This server was started with --request-log off.</Empty>}
      {of?.enabled && all.length === 0 && <Empty>No such request.</Empty>}
      {all.length > 0 && <Table of={all.slice(at * ROWS, (at + 1) * ROWS)} open={open.value} toggle={(number) => (open.value = open.peek() === number ? null : number)} />}
      {all.length > 0 && (
        <div class="pager">
          <Button icon="left" disabled={at === 0} onClick={() => (part.value = at - 1)}>
            Newer
          </Button>
          <span class="soft">
            {counted(all.length, "request")}, part {at + 1} of {parts}
          </span>
          <Button disabled={at >= parts - 1} onClick={() => (part.value = at + 1)}>
            Older
          </Button>
        </div>
      )}
    </section>
  );
}

function query(status: string, verb: string, find: string): string {
  const wanted = new URLSearchParams({ limit: String(ALL) });
  if (status) wanted.set("status", status);
  if (verb) wanted.set("verb", verb);
  const text = find.trim();
  if (UUID.test(text)) wanted.set("activityId", text);
  else if (text) wanted.set("path", text);
  return wanted.toString();
}

function kind(status: number): string {
  if (status >= 500) return "badge red";
  if (status >= 400) return "badge amber";
  return "badge";
}

function Table({ of, open, toggle }: { of: readonly Logged[]; open: number | null; toggle: (number: number) => void }) {
  return (
    <div class="scroll">
      <table class="table rows log">
        <thead>
          <tr>
            <th scope="col">Time (UTC)</th>
            <th scope="col">Verb</th>
            <th scope="col">Path</th>
            <th scope="col">Status</th>
            <th scope="col" class="num">RU</th>
            <th scope="col" class="num">ms</th>
            <th scope="col">Operation</th>
          </tr>
        </thead>
        <tbody>
          {of.map((one) => (
            <Line key={one.number} of={one} open={open === one.number} toggle={() => toggle(one.number)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Line({ of, open, toggle }: { of: Logged; open: boolean; toggle: () => void }) {
  return (
    <>
      <tr>
        <td class="time">{moment(of.at)}</td>
        <td class="mono">{of.verb}</td>
        <td class="path">
          <button type="button" class="link mono" aria-expanded={open} onClick={toggle}>
            {of.path}
          </button>
        </td>
        <td>
          <span class={kind(of.status)}>
            {of.status}
            {of.substatus ? `/${of.substatus}` : ""}
          </span>
        </td>
        <td class="num">{figure(of.charge)}</td>
        <td class="num">{figure(of.ms)}</td>
        <td class="soft">{of.missing ? `${of.operation}: ${of.missing}` : of.operation}</td>
      </tr>
      {open && (
        <tr class="more">
          <td colSpan={7}>
            <p>
              Activity id <code>{of.activityId}</code>{" "}
              <Button kind="quiet" onClick={() => void copy(of.activityId, "The activity id")}>
                Copy
              </Button>
            </p>
            {of.missing && <p class="warn-text">Not supported yet: {of.missing}</p>}
            {of.query && <pre class="code">{of.query}</pre>}
          </td>
        </tr>
      )}
    </>
  );
}
