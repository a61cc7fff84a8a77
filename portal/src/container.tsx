// A container: its name, its tabs, and the screen of one of them.

import { current, vanished } from "./live";
import { removal } from "./creation";
import { address, here, tabOf, TABS, type Spot, type Tab } from "./place";
import { readOnly } from "./session";
import { TtlBadge } from "./tree";
import { Button, Empty, lazy } from "./ui";
import { bytes, counted } from "./words";

export interface ScreenProps {
  at: Spot;
}

const SCREENS = {
  items: lazy<ScreenProps>(() => import("./items").then((module) => module.Items)),
  query: lazy<ScreenProps>(() => import("./query").then((module) => module.Query)),
  ttl: lazy<ScreenProps>(() => import("./ttl").then((module) => module.Ttl)),
  throughput: lazy<ScreenProps>(() => import("./throughput").then((module) => module.Throughput)),
  feed: lazy<ScreenProps>(() => import("./feed").then((module) => module.Feed)),
};

const NAMES: Record<Tab, string> = {
  items: "Items",
  query: "Query",
  ttl: "Time to live",
  throughput: "Throughput",
  feed: "Change feed",
};

export function Container({ at }: { at: Spot }) {
  const tab = tabOf(here.value);
  const of = current.value;
  const Screen = SCREENS[tab];
  return (
    <section class="page container">
      <header class="head">
        <h1>{at.container}</h1>
        {of && (
          <>
            <TtlBadge of={of} />
            <span class="soft">
              {counted(of.live.items, "live item")} · {bytes(of.live.bytes)} · key{" "}
              <span class="mono">{of.partitionKeyPaths.join(", ")}</span>
            </span>
          </>
        )}
        <span class="space" />
        {of && !readOnly.value && (
          <Button
            icon="trash"
            kind="quiet"
            label="Delete the container"
            onClick={() => (removal.value = { what: "container", ...at })}
          />
        )}
      </header>
      <nav class="tabs" aria-label="Of this container">
        {TABS.map((name) => (
          <a
            key={name}
            href={address(["c", at.database, at.container, name])}
            aria-current={name === tab ? "page" : undefined}
          >
            {NAMES[name]}
          </a>
        ))}
      </nav>
      {vanished.value && (
        <Empty>
          There is no container of this name any more. What you were writing is still below, to copy.
        </Empty>
      )}
      <Screen at={at} />
    </section>
  );
}
