// The frame around all screens: the bar with the server's time, the tree, banners, and what is shown.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { left, lost, sentence, waiting } from "./api";
import { clockState, second } from "./clock";
import { Container } from "./container";
import { Creator, Remover } from "./creation";
import { Database } from "./database";
import { known, moveClock } from "./live";
import { Login } from "./login";
import { Palette, palette } from "./palette";
import { address, here } from "./place";
import { logOut, readOnly, server } from "./session";
import { Start } from "./start";
import { Tree } from "./tree";
import { Button, Empty, Failure, Icon, lazy, Said, say, useTask } from "./ui";
import { duration, moment } from "./words";

const Requests = lazy(() => import("./requests").then((module) => module.Requests));

export function App() {
  const open = useSignal(false);
  // On a narrow screen the tree goes away when it has led somewhere.
  useSignalEffect(() => {
    if (here.value) open.value = false;
  });
  return (
    <>
      <a class="skip" href="#main" onClick={toMain}>
        Skip to the content
      </a>
      <Bar toggle={() => (open.value = !open.peek())} open={open.value} />
      <Banners />
      <div class={open.value ? "frame open" : "frame"}>
        <nav class="side" aria-label="Databases and containers" id="side">
          {server.value && <Tree />}
        </nav>
        <main id="main" tabIndex={-1}>
          <Screen />
        </main>
      </div>
      <Said />
      <Login />
      {palette.value && <Palette />}
      <Creator />
      <Remover />
    </>
  );
}

function toMain(event: Event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Screen() {
  const { path } = here.value;
  useEffect(() => {
    document.title = [path[2] ?? path[1] ?? path[0], "dayfly"].filter(Boolean).join(" · ");
  }, [path.join("/")]);
  if (!server.value) {
    return <Empty>{left.value ? "Logged out." : lost.value ? "Waiting for the server…" : "Connecting…"}</Empty>;
  }
  if (path[0] === "requests") return <Requests />;
  if (path[0] === "d" && path[1]) return <Database name={path[1]} key={path[1]} />;
  if (path[0] === "c" && path[1] && path[2]) {
    if (!known.value) return <Empty>Loading…</Empty>;
    return <Container key={path[1] + "/" + path[2]} at={{ database: path[1], container: path[2] }} />;
  }
  return <Start />;
}

function Bar({ toggle, open }: { toggle: () => void; open: boolean }) {
  return (
    <header class="bar">
      <button
        type="button"
        class="button quiet burger"
        aria-label="Databases and containers"
        aria-expanded={open}
        aria-controls="side"
        onClick={toggle}
      >
        <Icon name="menu" />
      </button>
      <a class="brand" href={address([])}>
        <Mark />
        dayfly
      </a>
      <Crumbs />
      <span class="space" />
      <button type="button" class="button finder" onClick={() => (palette.value = true)}>
        <Icon name="search" />
        <span class="words">Find</span>
        <kbd>Ctrl K</kbd>
      </button>
      {server.value && <Clock />}
      {readOnly.value && <span class="badge read-only">read only</span>}
      {server.value && (
        <Button kind="quiet" icon="out" label="Log out" onClick={() => logOut().catch(unheard)} />
      )}
    </header>
  );
}

/** We are out all the same. */
function unheard(error: unknown): void {
  say(`The server could not be told: ${sentence(error)}`);
}

/** A dayfly, as an arc of a day that is nearly over. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <circle cx="10" cy="10" r="7.5" class="whole" />
      <path d="M10 2.5a7.5 7.5 0 1 1-7.1 5.1" class="part" />
      <path d="M10 6v4.2l2.6 1.8" class="part" />
    </svg>
  );
}

function Crumbs() {
  const [kind, database, container] = here.value.path;
  if (kind === "requests") return <span class="crumbs">Requests</span>;
  if (!database) return null;
  return (
    <span class="crumbs">
      <a href={address(["d", database])}>{database}</a>
      {container && (
        <>
          <span class="soft"> / </span>
          <a href={address(["c", database, container])}>{container}</a>
        </>
      )}
    </span>
  );
}

const STEPS: readonly (readonly [string, number])[] = [
  ["+1 min", 60],
  ["+1 h", 3600],
  ["+1 d", 86400],
  ["+90 d", 90 * 86400],
];

/** The server's time; with a test clock, the ways to move it. */
function Clock() {
  const open = useSignal(false);
  const box = useRef<HTMLDivElement>(null);
  const task = useTask();
  const { frozen, held, offsetSeconds, purgeHeld, behindSeconds } = clockState.value;
  const canMove = server.value?.clock.canMove && !readOnly.value;
  useEffect(() => {
    const outside = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) open.value = false;
    };
    const escape = (event: KeyboardEvent) => {
      if (event.key === "Escape") open.value = false;
    };
    addEventListener("pointerdown", outside);
    addEventListener("keydown", escape);
    return () => {
      removeEventListener("pointerdown", outside);
      removeEventListener("keydown", escape);
    };
  }, []);
  const move = (step: Record<string, number | boolean>) => task.run(() => moveClock(step));
  const odd = frozen || held || purgeHeld !== null || offsetSeconds !== 0;
  return (
    <div class="clock" ref={box}>
      <button
        type="button"
        class={odd ? "button time odd" : "button time"}
        aria-expanded={open.value}
        title="The server's time, in UTC"
        onClick={() => (open.value = !open.peek())}
      >
        <Icon name="clock" />
        <span class="date">{moment(second.value).slice(0, 10)}</span>
        <span class="mono">{moment(second.value).slice(11)}</span>
        {frozen && <span class="badge amber">frozen</span>}
        {held && <span class="badge red">held</span>}
      </button>
      {open.value && (
        <div class="popover" role="group" aria-label="The server's clock">
          <p>
            {offsetSeconds !== 0 ? `Moved ahead by ${duration(offsetSeconds)}.` : "As the machine's clock."}
            {behindSeconds > 0 && ` The machine's clock is ${duration(behindSeconds)} behind.`}
            {frozen && " It stands still."}
          </p>
          {purgeHeld && <p class="warn-text">{purgeHeld}</p>}
          {canMove ? (
            <div class="row">
              <Button
                pressed={frozen}
                disabled={task.busy.value}
                onClick={() => move({ frozen: !frozen })}
              >
                {frozen ? "Let it run" : "Freeze"}
              </Button>
              {STEPS.map(([name, seconds]) => (
                <Button key={name} disabled={task.busy.value} onClick={() => move({ advanceSeconds: seconds })}>
                  {name}
                </Button>
              ))}
            </div>
          ) : (
            !server.value?.clock.canMove && (
              <p class="soft">
                A server that was started with <code>--test-clock</code> can be moved ahead from here.
              </p>
            )
          )}
          <Failure of={task.error.value} />
        </div>
      )}
    </div>
  );
}

function Banners() {
  const wait = waiting.value;
  return (
    <div aria-live="assertive">
      {lost.value && (
        <p class="banner bad" role="alert">
          <Icon name="warn" /> The server does not answer. This page goes on by itself when it does.
        </p>
      )}
      {wait && !lost.value && (
        <p class="banner">
          {wait.status === 503 ? "The server cannot answer just now" : "The server is busy"} ({wait.status});
          trying again in {wait.seconds} s.
        </p>
      )}
    </div>
  );
}
