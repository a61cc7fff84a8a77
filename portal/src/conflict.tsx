// Somebody else was quicker (412): the three texts side by side, and what to do.

import { Button, copy } from "./ui";

interface Props {
  base: string;
  theirs: string;
  mine: string;
  keepMine: () => void;
  takeTheirs: () => void;
  goOn: () => void;
}

export function Conflict({ base, theirs, mine, keepMine, takeTheirs, goOn }: Props) {
  return (
    <div class="conflict">
      <h2>Somebody else has changed this item</h2>
      <p class="soft">Nothing was saved. Marked lines are those that differ from the text you began with.</p>
      <div class="three">
        <Text name="As you opened it" text={base} against={base} />
        <Text name="On the server now" text={theirs} against={base} />
        <Text name="Yours" text={mine} against={base} />
      </div>
      <footer class="actions">
        <Button kind="primary" onClick={keepMine}>
          Save mine over it
        </Button>
        <Button onClick={takeTheirs}>Take the server's</Button>
        <Button onClick={goOn}>Go on editing mine</Button>
        <span class="space" />
        <Button onClick={() => void copy(mine, "Your text")}>Copy mine</Button>
      </footer>
    </div>
  );
}

const LINES = 80;

function Text({ name, text, against }: { name: string; text: string; against: string }) {
  const lines = text.split("\n");
  const same = common(against.split("\n"), lines);
  const from = Math.max(0, lines.findIndex((_, at) => !same.has(at)) - LINES / 4);
  const shown = lines.slice(from, from + LINES);
  return (
    <section aria-label={name}>
      <h3>{name}</h3>
      <pre tabIndex={0}>
        {from > 0 && <span class="soft">… {from} lines{"\n"}</span>}
        {shown.map((line, at) =>
          same.has(from + at) ? `${line.slice(0, 2000)}\n` : <mark key={at}>{`${line.slice(0, 2000)}\n`}</mark>,
        )}
        {lines.length > from + LINES && <span class="soft">… {lines.length - from - LINES} lines</span>}
      </pre>
    </section>
  );
}

const TABLE = 1_000_000;

/** Which lines of `after` stand in `before` too, in the same order. */
function common(before: readonly string[], after: readonly string[]): Set<number> {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  const same = new Set<number>();
  for (let at = 0; at < start; at++) same.add(at);
  for (let at = after.length - end; at < after.length; at++) same.add(at);
  const a = before.slice(start, before.length - end);
  const b = after.slice(start, after.length - end);
  if (a.length * b.length > TABLE) return same;
  for (const at of longest(a, b)) same.add(start + at);
  return same;
}

/** The longest common subsequence, as places in `b`. */
function longest(a: readonly string[], b: readonly string[]): number[] {
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const here = i * width + j;
      table[here] =
        a[i] === b[j] ? table[here + width + 1]! + 1 : Math.max(table[here + width]!, table[here + 1]!);
    }
  }
  const places: number[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      places.push(j);
      i++;
      j++;
    } else if (table[(i + 1) * width + j]! >= table[i * width + j + 1]!) i++;
    else j++;
  }
  return places;
}
