// A database: its containers with their figures.

import { containers, databases, known } from "./live";
import { creation, removal } from "./creation";
import { address } from "./place";
import { readOnly } from "./session";
import { TtlBadge } from "./tree";
import { Button, Empty } from "./ui";
import { bytes, count, counted, duration } from "./words";

/** So that with the tree beside it the document stays small. */
const SHOWN = 60;

export function Database({ name }: { name: string }) {
  const own = containers.value.filter((of) => of.database === name);
  if (known.value && own.length === 0 && !databases.value.includes(name)) {
    return <Empty>There is no database of this name any more.</Empty>;
  }
  return (
    <section class="page">
      <header class="head">
        <h1>{name}</h1>
        <span class="soft">{counted(own.length, "container")}</span>
        <span class="space" />
        {!readOnly.value && (
          <>
            <Button icon="plus" onClick={() => (creation.value = { what: "container", database: name })}>
              New container
            </Button>
            <Button
              icon="trash"
              kind="danger"
              onClick={() => (removal.value = { what: "database", database: name })}
            >
              Delete
            </Button>
          </>
        )}
      </header>
      {own.length === 0 ? (
        <Empty>It has no containers yet.</Empty>
      ) : (
        <div class="scroll">
          <table class="table">
            <thead>
              <tr>
                <th scope="col">Container</th>
                <th scope="col">Partition key</th>
                <th scope="col">Default ttl</th>
                <th scope="col" class="num">Live items</th>
                <th scope="col" class="num">Size</th>
                <th scope="col" class="num">Expired, not purged</th>
                <th scope="col" class="num">Lag</th>
              </tr>
            </thead>
            <tbody>
              {own.slice(0, SHOWN).map((of) => (
                <tr key={of.rid}>
                  <td>
                    <a href={address(["c", name, of.container])}>{of.container}</a>
                  </td>
                  <td class="mono">{of.partitionKeyPaths.join(", ")}</td>
                  <td>
                    <TtlBadge of={of} />
                  </td>
                  <td class="num">{count(of.live.items)}</td>
                  <td class="num">{bytes(of.live.bytes)}</td>
                  <td class="num">{count(of.backlog.items)}</td>
                  <td class={of.isLagging ? "num warn-text" : "num"}>
                    {of.lagSeconds > 0 ? duration(of.lagSeconds) : "–"}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {own.length > SHOWN && <p class="soft">The first {SHOWN} are shown; the tree finds the others.</p>}
    </section>
  );
}
