// How a query was carried out, as a drawing: what was walked, what of it was dead, what was loaded,
// what was kept and sorted in memory, and what came out.

import { bytes, count, counted } from "./words";
import type { Plan as Told } from "./query-calls";

interface Step {
  name: string;
  figure: string;
  value: number;
  dead?: number;
  notes: string[];
}

const WAYS: Record<string, string> = {
  noItems: "reads no items",
  nothing: "nothing to read",
  known: "knows it already",
  scan: "all items",
  range: "a range of an index",
  values: "values of indexes",
  order: "an index in its order",
};

const SHOWN = 5;

function steps({ access, read, memory, answer }: Told): Step[] {
  const indexes = access.indexes.slice(0, SHOWN).map(({ index, range }) => range ?? `${index}, all of it`);
  const more = access.indexes.length + access.indexesLeftOut - indexes.length;
  const list: Step[] = [
    {
      name: access.way === "scan" ? "Walk all items" : "Walk",
      figure: counted(read.entries, access.way === "scan" ? "key" : "entry", access.way === "scan" ? "keys" : "entries"),
      value: read.entries,
      dead: read.dead,
      notes: [
        ...indexes,
        ...(more > 0 ? [`and ${count(more)} more`] : []),
        ...(access.direction ? [access.direction] : []),
        read.dead > 0 ? `${counted(read.dead, "of them")} dead, not purged`.replace("of thems", "of them") : "",
      ].filter(Boolean),
    },
    {
      name: "Load",
      figure: counted(read.items, "item"),
      value: read.items,
      notes: read.items > 0 ? [bytes(read.bytes)] : [],
    },
  ];
  if (memory.holds !== "nothing") {
    const name = memory.holds === "sorted rows" ? "Sort" : memory.holds === "groups" ? "Group" : "Keep apart";
    list.push({ name, figure: `${count(memory.count)} ${memory.holds}`, value: memory.count, notes: [`${bytes(memory.bytes)} in memory`] });
  }
  list.push({
    name: "Answer",
    figure: counted(answer.rows, "row"),
    value: answer.rows,
    notes: [bytes(answer.bytes), ...(answer.more ? ["and there is more"] : [])],
  });
  return list;
}

const WIDTH = 200;
const HEIGHT = 14;

export function Plan({ of }: { of: Told }) {
  const all = steps(of);
  const most = Math.max(1, ...all.map(({ value }) => value));
  const wide = (value: number) => (value === 0 ? 0 : Math.max(2, (value / most) * WIDTH));
  return (
    <div class="plan">
      <p>
        <span class="badge ttl-on">{WAYS[of.access.way] ?? of.access.way}</span> {of.access.reason}{" "}
        {of.access.partitions !== null && (
          <span class="soft">The filter names {counted(of.access.partitions, "partition")}.</span>
        )}
      </p>
      {of.access.condition && <p class="mono breaks">{of.access.condition}</p>}
      <ol class="steps">
        {all.map((step) => (
          <li key={step.name}>
            <h3>{step.name}</h3>
            <strong>{step.figure}</strong>
            <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${step.name}: ${step.figure}`}>
              <rect class="rail" width={WIDTH} height={HEIGHT} />
              <rect class="live" width={wide(step.value)} height={HEIGHT} />
              {step.dead !== undefined && step.dead > 0 && <rect class="dead" width={wide(step.dead)} height={HEIGHT} />}
            </svg>
            {step.notes.map((note) => (
              <span key={note} class="soft breaks">
                {note}
              </span>
            ))}
          </li>
        ))}
      </ol>
      <p class="soft">
        The first page, {of.charge} RU. On disk are {counted(of.storage.rows, "row")} of the whole store, of which{" "}
        {count(of.storage.deletedRows)} are deletes that wait for a compaction.
      </p>
    </div>
  );
}
