// Time to live of a container: what lives, what dies when, and what another default would do.

import { useSignal } from "@preact/signals";
import { ask, askFor, refusal } from "./api";
import { beat } from "./clock";
import type { ScreenProps } from "./container";
import { Forecast } from "./forecast";
import { compact, Json, withMember } from "./json";
import { changes, current, epoch, reload, type Count, type Pending, type Purge } from "./live";
import { admin, readOnly, server } from "./session";
import { figures, rest, type Spot } from "./place";
import { Figure } from "./start";
import { TtlControl, type Chosen } from "./ttl-control";
import { Button, Countdown, Failure, Note, say, TypeTheName, useAsked, useTask } from "./ui";
import { bytes, count, counted, duration, figure, moment, ttlBadge } from "./words";

interface Change {
  at: number;
  by: string;
  from: number | null;
  to: number | null;
  condemnedItems: number | null;
}

interface Status {
  now: number;
  defaultTtl: number | null;
  pending: Pending | null;
  live: Count;
  never: Count;
  uninterpretable: number;
  backlog: Count & { oldestExpiredAt: number | null };
  purge: Purge;
  history: Change[];
}

interface WhatIf {
  now: number;
  expired: Count;
  expiredInHour: Count;
  expiredInDay: Count;
  later: Count;
  never: Count;
  live: Count;
  uninterpretable: number;
}

const EVERY = 3;

export function Ttl({ at }: ScreenProps) {
  const turn = useSignal(0);
  const asked = useAsked<Status>(
    (abort) => askFor<Status>(`${figures(at)}/ttl`, { abort, watch: true }),
    [at.database, at.container, epoch.value, turn.value, Math.floor(beat.value / EVERY)],
  );
  const refresh = () => void turn.value++;
  const of = asked.value.value;
  if (!of) return <Failure of={asked.error.value} />;
  const lag = of.backlog.oldestExpiredAt === null ? 0 : of.now - of.backlog.oldestExpiredAt;
  return (
    <div class="ttl">
      <Failure of={asked.error.value} />
      <dl class="figures">
        <Figure name="Live items" value={count(of.live.items)} />
        <Figure name="Size" value={bytes(of.live.bytes)} />
        <Figure name="Never expire" value={count(of.never.items)} />
        <Figure name="Unreadable ttl" value={count(of.uninterpretable)} warn={of.uninterpretable > 0} />
        <Figure name="Expired, not purged" value={count(of.backlog.items)} />
        <Figure name="Purge lags by" value={lag > 0 ? duration(lag) : "–"} warn={current.value?.isLagging ?? false} />
        <Figure name="Purged so far" value={count(of.purge.purgedItems)} />
      </dl>
      {of.pending && <Coming at={at} of={of} pending={of.pending} done={refresh} />}
      <div class="columns">
        <div class="stack">
          <Default key={`${of.defaultTtl}`} at={at} of={of} done={refresh} />
          <PurgeBox at={at} of={of} done={refresh} />
        </div>
        <div class="stack">
          <Forecast at={at} turn={turn.value} />
          <History of={of.history} />
        </div>
      </div>
    </div>
  );
}

/** A change that is still to come, and the way to take it back. */
function Coming({ at, of, pending, done }: { at: Spot; of: Status; pending: Pending; done: () => void }) {
  const task = useTask();
  return (
    <Note kind="warn">
      The default changes from <strong>{ttlBadge(of.defaultTtl)}</strong> to{" "}
      <strong>{ttlBadge(pending.defaultTtl)}</strong> in <Countdown at={pending.at} />, at{" "}
      {moment(pending.at)} UTC.{" "}
      {!readOnly.value && (
        <Button
          disabled={task.busy.value}
          onClick={() =>
            task.run(async () => {
              await putDefault(at, of.defaultTtl, false);
              say("The change is taken back.");
              done();
            })
          }
        >
          Take back
        </Button>
      )}
      <Failure of={task.error.value} />
    </Note>
  );
}

const ATTEMPTS = 3;

/**
 * Puts a default into the container's definition and leaves the rest as it is, to the last digit.
 * Null when done; else why the server's guard wants it confirmed.
 */
async function putDefault(at: Spot, ttl: number | null, confirmed: boolean): Promise<string | null> {
  for (let attempt = 0; ; attempt++) {
    const before = await ask(rest(at));
    const json = new Json(before.text);
    const etag = json.string(json.member("_etag")) ?? "*";
    const answer = await ask(rest(at), {
      verb: "PUT",
      headers: {
        "if-match": etag,
        "content-type": "application/json",
        ...(confirmed ? { "x-dayfly-confirm-expiry": "true" } : {}),
      },
      body: withMember(definition(json), "defaultTtl", ttl === null ? undefined : String(ttl)),
      takes: [412],
    });
    if (answer.status !== 412) {
      changes.value++;
      await reload();
      return null;
    }
    // Either somebody was quicker, or it is the guard.
    const after = new Json((await ask(rest(at))).text);
    if (after.string(after.member("_etag")) === etag) return refusal(answer).message;
    if (attempt >= ATTEMPTS) throw refusal(answer);
  }
}

/** A definition without what the server adds. */
function definition(json: Json): string {
  return compact(json, (name) => !name.startsWith("_"));
}

function Default({ at, of, done }: { at: Spot; of: Status; done: () => void }) {
  const chosen = useSignal<Chosen>({ ttl: of.defaultTtl, error: null });
  const guard = useSignal<string | null>(null);
  const task = useTask();
  const { ttl, error } = chosen.value;
  const same = ttl === of.defaultTtl;
  const delay = server.value?.ttlChangeDelaySeconds ?? 0;
  const saved = () => {
    say(delay > 0 ? `The change counts in ${duration(delay)}.` : "The default is changed.");
    done();
  };
  const save = (event: Event) => {
    event.preventDefault();
    if (error !== null || readOnly.peek()) return;
    task.run(async () => {
      guard.value = await putDefault(at, ttl, false);
      if (guard.value === null) saved();
    });
  };
  return (
    <form class="box" onSubmit={save} aria-label="Default time to live">
      <TtlControl
        label="Default time to live"
        initial={of.defaultTtl}
        onChange={(next) => (chosen.value = next)}
      />
      {error === null && <Would at={at} ttl={ttl} same={same} />}
      {!readOnly.value && (
        <footer class="row">
          <Button kind="primary" type="submit" disabled={same || error !== null || task.busy.value}>
            Save
          </Button>
          {delay > 0 && <span class="soft">Counts {duration(delay)} later.</span>}
        </footer>
      )}
      <Failure of={task.error.value} />
      {guard.value !== null && (
        <TypeTheName
          title="This expires many items at once"
          name={at.container}
          action="Save, and let them expire"
          close={() => (guard.value = null)}
          act={async () => {
            const refused = await putDefault(at, ttl, true);
            if (refused !== null) throw new Error(refused);
            guard.value = null;
            saved();
          }}
        >
          <p>{guard.value.replace(/ To expire them, send the header.*$/, "")}</p>
          <p>What has expired never comes back.</p>
        </TypeTheName>
      )}
    </form>
  );
}

/** What a default would do, before it is saved. */
function Would({ at, ttl, same }: { at: Spot; ttl: number | null; same: boolean }) {
  const asked = useAsked<WhatIf>(
    (abort) => askFor<WhatIf>(`${figures(at)}/ttl/whatif?defaultTtl=${ttl ?? "off"}`, { abort, watch: true }),
    [ttl, epoch.value, Math.floor(beat.value / EVERY)],
  );
  const of = asked.value.value;
  if (!of) return <Failure of={asked.error.value} />;
  const rows: [string, Count, boolean][] = [
    ["at once", of.expired, of.expired.items > 0],
    ["within an hour", of.expiredInHour, false],
    ["within a day", of.expiredInDay, false],
    ["later", of.later, false],
    ["never", of.never, false],
  ];
  return (
    <div class="would" aria-live="polite">
      <p>
        {same ? "As it is, of " : "With this default, of "}
        {counted(of.live.items, "live item")} would expire:
      </p>
      <table class="table tight">
        <tbody>
          {rows.map(([name, what, warn]) => (
            <tr key={name} data-when={name}>
              <th scope="row">{name}</th>
              <td class={warn ? "num warn-text" : "num"}>{count(what.items)}</td>
              <td class="num soft">{bytes(what.bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {ttl === null && of.live.items > 0 && (
        <p class="soft">With time to live off, a ttl of an item counts for nothing. What has expired stays gone.</p>
      )}
      {of.uninterpretable > 0 && (
        <p class="soft">{counted(of.uninterpretable, "item")} with a ttl that cannot be read live by the default.</p>
      )}
    </div>
  );
}

function PurgeBox({ at, of, done }: { at: Spot; of: Status; done: () => void }) {
  const task = useTask();
  const body = JSON.stringify({ container: `${at.database}/${at.container}` });
  const paused = of.purge.state === "paused";
  const call = (name: string) =>
    task.run(async () => {
      const answer = await ask(`${admin}purge/${name}`, { verb: "POST", body });
      if (name === "run") {
        const { purgedItems } = JSON.parse(answer.text) as { purgedItems: number };
        say(`${counted(purgedItems, "item")} removed from the disk.`);
      }
      done();
      await reload();
    });
  return (
    <section class="box" aria-label="Purge">
      <h2>Purge</h2>
      <p>
        <span class={`badge purge-${of.purge.state}`}>{of.purge.state}</span>{" "}
        {of.purge.reason ?? words(of)}
      </p>
      <p class="soft">
        What has expired is gone for everybody at that second; the purge only takes it off the disk.
      </p>
      {!readOnly.value && (
        <div class="row">
          <Button icon="play" disabled={task.busy.value} onClick={() => call("run")}>
            Run now
          </Button>
          <Button disabled={task.busy.value} onClick={() => call(paused ? "resume" : "pause")}>
            {paused ? "Resume" : "Pause"}
          </Button>
        </div>
      )}
      <Failure of={task.error.value} />
    </section>
  );
}

function words(of: Status): string {
  if (of.backlog.items === 0) return "Nothing waits to be removed.";
  const rate = of.purge.itemsPerSecond > 0 ? `, ${figure(of.purge.itemsPerSecond)} a second` : "";
  return `${counted(of.backlog.items, "expired item")} (${bytes(of.backlog.bytes)}) to remove${rate}.`;
}

function History({ of }: { of: readonly Change[] }) {
  return (
    <section aria-label="Changes of the default">
      <h2>Changes of the default</h2>
      {of.length === 0 ? (
        <p class="soft">It was never changed.</p>
      ) : (
        <div class="scroll">
          <table class="table">
            <thead>
              <tr>
                <th scope="col">When (UTC)</th>
                <th scope="col">By</th>
                <th scope="col">From</th>
                <th scope="col">To</th>
                <th scope="col" class="num">
                  Expired by it
                </th>
              </tr>
            </thead>
            <tbody>
              {of.toReversed().map((change, at) => (
                <tr key={at}>
                  <td class="time">{moment(change.at)}</td>
                  <td>{change.by}</td>
                  <td>{ttlBadge(change.from)}</td>
                  <td>{ttlBadge(change.to)}</td>
                  <td class="num">{change.condemnedItems === null ? "?" : count(change.condemnedItems)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
