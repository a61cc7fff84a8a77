// Making databases and containers, and removing them.

import { signal, useSignal } from "@preact/signals";
import { ask } from "./api";
import { databases, reload } from "./live";
import { go, rest, type Spot } from "./place";
import { TtlControl, type Chosen } from "./ttl-control";
import { Button, Choice, Dialog, Failure, Field, say, TypeTheName, useTask } from "./ui";

export interface Creation {
  what: "database" | "container";
  database?: string | undefined;
}

/** What is being made, if something is. */
export const creation = signal<Creation | null>(null);

export interface Removal {
  what: "database" | "container";
  database: string;
  container?: string;
}

/** What is to be removed, if somebody confirms it. */
export const removal = signal<Removal | null>(null);

export async function createDatabase(id: string): Promise<void> {
  await ask("/dbs", { verb: "POST", body: JSON.stringify({ id }) });
}

export async function createContainer(
  database: string,
  definition: { id: string; partitionKey: object; defaultTtl?: number },
  throughput?: string,
): Promise<void> {
  await ask(`/dbs/${encodeURIComponent(database)}/colls`, {
    verb: "POST",
    body: JSON.stringify(definition),
    headers: throughput ? { "x-ms-offer-throughput": throughput } : {},
  });
}

/** The definition of a partition key of one path or of several, or what is wrong with them. */
export function partitionKey(text: string): object | string {
  const paths = text.split(",").map((path) => path.trim());
  if (paths.some((path) => !path.startsWith("/") || path === "/")) {
    return "A path begins with a slash, such as /customer.";
  }
  if (paths.length > 3) return "A partition key has three paths at most.";
  return { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 };
}

export function Creator() {
  const of = creation.value;
  if (!of) return null;
  const close = () => (creation.value = null);
  const isDatabase = of.what === "database";
  return (
    <Dialog title={isDatabase ? "New database" : "New container"} close={close}>
      <Choice
        label="What to create"
        value={of.what}
        options={[
          ["container", "Container"],
          ["database", "Database"],
        ]}
        onChange={(what) => (creation.value = { ...of, what })}
      />
      {isDatabase ? <NewDatabase close={close} /> : <NewContainer database={of.database} close={close} />}
    </Dialog>
  );
}

function NewDatabase({ close }: { close: () => void }) {
  const id = useSignal("");
  const task = useTask();
  const submit = (event: Event) => {
    event.preventDefault();
    task.run(async () => {
      await createDatabase(id.peek());
      await reload();
      close();
      go(["d", id.peek()]);
    });
  };
  return (
    <form class="stack" onSubmit={submit}>
      <Field label="Name">
        {(ids) => (
          <input
            {...ids}
            class="input"
            data-focus
            autocomplete="off"
            value={id.value}
            onInput={(event) => (id.value = event.currentTarget.value)}
          />
        )}
      </Field>
      <Failure of={task.error.value} />
      <footer>
        <Button onClick={close}>Cancel</Button>
        <Button kind="primary" type="submit" disabled={id.value === "" || task.busy.value}>
          Create
        </Button>
      </footer>
    </form>
  );
}

function NewContainer({ database: given, close }: { database: string | undefined; close: () => void }) {
  const database = useSignal(given ?? databases.peek()[0] ?? "");
  const id = useSignal("");
  const paths = useSignal("/id");
  const throughput = useSignal("");
  const ttl = useSignal<Chosen>({ ttl: null, error: null });
  const task = useTask();
  const key = partitionKey(paths.value);
  const isNew = database.value !== "" && !databases.value.includes(database.value);
  const ready = database.value !== "" && id.value !== "" && typeof key === "object" && !ttl.value.error;
  const submit = (event: Event) => {
    event.preventDefault();
    if (!ready || typeof key === "string") return;
    const { ttl: defaultTtl } = ttl.peek();
    const definition = { id: id.peek(), partitionKey: key };
    task.run(async () => {
      if (isNew) await createDatabase(database.peek());
      await createContainer(
        database.peek(),
        defaultTtl === null ? definition : { ...definition, defaultTtl },
        throughput.peek().trim(),
      );
      await reload();
      close();
      go(["c", database.peek(), id.peek()]);
    });
  };
  return (
    <form class="stack" onSubmit={submit}>
      <Field label="Database" hint={isNew ? "It will be created." : null}>
        {(ids) => (
          <>
            <input
              {...ids}
              class="input"
              list="all-databases"
              autocomplete="off"
              value={database.value}
              onInput={(event) => (database.value = event.currentTarget.value)}
            />
            <datalist id="all-databases">
              {databases.value.slice(0, 50).map((name) => (
                <option value={name} key={name} />
              ))}
            </datalist>
          </>
        )}
      </Field>
      <Field label="Name">
        {(ids) => (
          <input
            {...ids}
            class="input"
            data-focus
            autocomplete="off"
            value={id.value}
            onInput={(event) => (id.value = event.currentTarget.value)}
          />
        )}
      </Field>
      <Field
        label="Partition key"
        hint="A path such as /customer; up to three, with commas, for a hierarchical key."
        error={typeof key === "string" ? key : null}
      >
        {(ids) => (
          <input
            {...ids}
            class="input mono"
            autocomplete="off"
            spellcheck={false}
            value={paths.value}
            onInput={(event) => (paths.value = event.currentTarget.value)}
          />
        )}
      </Field>
      <TtlControl label="Default time to live" initial={null} onChange={(chosen) => (ttl.value = chosen)} />
      <Field label="Throughput, RU/s" hint="Optional.">
        {(ids) => (
          <input
            {...ids}
            class="input"
            inputMode="numeric"
            autocomplete="off"
            value={throughput.value}
            onInput={(event) => (throughput.value = event.currentTarget.value)}
          />
        )}
      </Field>
      <Failure of={task.error.value} />
      <footer>
        <Button onClick={close}>Cancel</Button>
        <Button kind="primary" type="submit" disabled={!ready || task.busy.value}>
          Create
        </Button>
      </footer>
    </form>
  );
}

export function Remover() {
  const of = removal.value;
  if (!of) return null;
  const name = of.container ?? of.database;
  const act = async () => {
    const path = of.container
      ? rest({ database: of.database, container: of.container } satisfies Spot)
      : `/dbs/${encodeURIComponent(of.database)}`;
    await ask(path, { verb: "DELETE", takes: [404] });
    removal.value = null;
    say(`${name} is deleted.`);
    go(of.container ? ["d", of.database] : []);
    await reload();
  };
  return (
    <TypeTheName
      title={`Delete the ${of.what}`}
      name={name}
      action={`Delete the ${of.what}`}
      close={() => (removal.value = null)}
      act={act}
    >
      <p>
        {of.what === "database"
          ? "All its containers and all their items go with it. This cannot be taken back."
          : "All its items go with it. This cannot be taken back."}
      </p>
    </TypeTheName>
  );
}
