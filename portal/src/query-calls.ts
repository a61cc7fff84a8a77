// Asking queries: their pages, what is wrong with them, and their texts for other clients.

import { ask, Refusal } from "./api";
import { cut, Json, type Node } from "./json";
import { admin, server } from "./session";
import { rest, type Spot } from "./place";
import { emulatorKey } from "./known";

export interface Parameter {
  name: string;
  /** JSON. */
  value: string;
}

export interface Asked {
  query: string;
  parameters: readonly Parameter[];
}

export interface QueryPage {
  json: Json;
  rows: Node[];
  continuation: string | null;
  charge: number;
  metrics: Record<string, string>;
  indexes: IndexMetrics | null;
  milliseconds: number;
}

interface Specs {
  SingleIndexes: { IndexSpec: string }[];
  CompositeIndexes: { IndexSpecs: string[] }[];
}

export interface IndexMetrics {
  UtilizedIndexes: Specs;
  PotentialIndexes: Specs;
}

/** What is wrong with a query, and where. */
export interface Fault {
  from: number;
  to: number;
  message: string;
}

export interface Plan {
  now: number;
  access: {
    way: string;
    reason: string;
    partitions: number | null;
    indexes: { index: string; range: string | null }[];
    indexesLeftOut: number;
    condition: string | null;
    direction: string | null;
  };
  read: { entries: number; dead: number; items: number; bytes: number };
  memory: { holds: string; count: number; bytes: number };
  answer: { rows: number; bytes: number; more: boolean };
  storage: { rows: number; deletedRows: number };
  charge: number;
}

export const PAGE = 100;

/** The body of a query; its parameters' values go as they were written. */
export function body({ query, parameters }: Asked, more = ""): string {
  const given = parameters.filter(({ name }) => name !== "");
  const written = given.map(({ name, value }) => `{"name":${JSON.stringify(name)},"value":${value || "null"}}`);
  return `{${more}"query":${JSON.stringify(query)},"parameters":[${written.join(",")}]}`;
}

export async function page(
  at: Spot,
  asked: Asked,
  continuation: string | null,
  abort: AbortSignal,
): Promise<QueryPage> {
  const answer = await ask(`${rest(at)}/docs`, {
    verb: "POST",
    abort,
    headers: {
      "content-type": "application/query+json",
      "x-ms-documentdb-isquery": "true",
      "x-ms-documentdb-query-enablecrosspartition": "true",
      "x-ms-documentdb-query-enable-scan": "true",
      "x-ms-documentdb-populatequerymetrics": "true",
      "x-ms-cosmos-populateindexmetrics-V2": "true",
      "x-ms-max-item-count": String(PAGE),
      ...(continuation ? { "x-ms-continuation": continuation } : {}),
    },
    body: body(asked),
  });
  const json = new Json(answer.text);
  return {
    json,
    rows: json.elements(json.member("Documents")),
    continuation: answer.headers.get("x-ms-continuation"),
    charge: Number(answer.headers.get("x-ms-request-charge") ?? 0),
    metrics: metrics(answer.headers.get("x-ms-documentdb-query-metrics")),
    indexes: indexes(answer.headers.get("x-ms-cosmos-index-utilization")),
    milliseconds: Number(answer.headers.get("x-ms-request-duration-ms") ?? 0),
  };
}

function metrics(text: string | null): Record<string, string> {
  const pairs = (text ?? "").split(";").map((pair) => pair.split("=", 2));
  return Object.fromEntries(pairs.filter(([name, value]) => name && value));
}

function indexes(text: string | null): IndexMetrics | null {
  if (!text) return null;
  try {
    return JSON.parse(decodeURIComponent(text)) as IndexMetrics;
  } catch {
    return null;
  }
}

export async function explain(at: Spot, asked: Asked, abort: AbortSignal): Promise<Plan> {
  const container = `"container":${JSON.stringify(`${at.database}/${at.container}`)},`;
  const answer = await ask(`${admin}query/explain`, { verb: "POST", body: body(asked, container), abort });
  return JSON.parse(answer.text) as Plan;
}

/** The faults that a refusal tells, with their places; none, if it is about something else. */
export function faults(error: unknown): Fault[] {
  if (!(error instanceof Refusal)) return [];
  const told = /^Message: (\{.*\})/s.exec(error.message)?.[1];
  if (!told) return [];
  try {
    const { errors } = JSON.parse(told) as {
      errors: { location?: { start: number; end: number }; code?: string; message: string }[];
    };
    return errors.map(({ location, code, message }) => ({
      from: location?.start ?? 0,
      to: location?.end ?? 0,
      message: code ? `${message} (${code})` : message,
    }));
  } catch {
    return [];
  }
}

const OTHER = "value";

/** Columns of rows: names of members, or one for what is no object. */
export function columns(rows: readonly Node[], most: number): string[] {
  const names = new Set<string>();
  let others = false;
  for (const row of rows) {
    if (row.kind !== "object") others = true;
    else for (const { name } of row.members) names.add(name);
  }
  const system = (name: string) => (name.startsWith("_") ? 1 : 0);
  const all = [...names].sort((a, b) => system(a) - system(b));
  return [...(others ? [OTHER] : []), ...all].slice(0, most);
}

export function cell(json: Json, row: Node, column: string): string {
  const node = row.kind === "object" ? json.member(column, row) : column === OTHER ? row : undefined;
  return node ? cut(json.string(node) ?? json.raw(node), 80) : "";
}

/** Rows as JSON lines: the texts as they came. */
export function jsonLines(pages: readonly QueryPage[]): string[] {
  return pages.flatMap(({ json, rows }) => rows.map((row) => json.raw(row).replace(/[\r\n]+/g, " ") + "\n"));
}

/** Rows as CSV: strings as they read, everything else as JSON. */
export function csv(pages: readonly QueryPage[]): string[] {
  const names = new Set(pages.flatMap(({ rows }) => columns(rows, Infinity)));
  const line = (cells: string[]) => cells.map(quotedCell).join(",") + "\r\n";
  const rows = pages.flatMap(({ json, rows }) =>
    rows.map((row) =>
      line(
        [...names].map((name) => {
          const node = row.kind === "object" ? json.member(name, row) : name === OTHER ? row : undefined;
          return node ? (json.string(node) ?? json.raw(node)) : "";
        }),
      ),
    ),
  );
  return [line([...names]), ...rows];
}

function quotedCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export type Client = "curl" | "python" | "javascript";

/** The query as a program of another client. */
export function copyAs(client: Client, at: Spot, asked: Asked): string {
  const endpoints = server.peek()?.endpoints ?? [];
  const endpoint = (endpoints.find(({ scheme }) => scheme === "http") ?? endpoints[0])?.url ?? `${location.origin}/`;
  // Where there is https alone, its certificate is one that nobody knows yet.
  const https = endpoint.startsWith("https:");
  const pem = `curl -sko emulator.pem ${endpoint}_explorer/emulator.pem`;
  const ca = https ? "--cacert emulator.pem " : "";
  const key = server.peek()?.wellKnownKey ? emulatorKey : "<your key>";
  const text = JSON.stringify(asked.query);
  const given = asked.parameters.filter(({ name }) => name !== "");
  const list = `[${given.map(({ name, value }) => `{"name": ${JSON.stringify(name)}, "value": ${value || "null"}}`).join(", ")}]`;
  const [database, container] = [JSON.stringify(at.database), JSON.stringify(at.container)];
  switch (client) {
    case "python":
      return `${https ? `# ${pem}\n# export REQUESTS_CA_BUNDLE=$PWD/emulator.pem\n` : ""}import json
from azure.cosmos import CosmosClient

client = CosmosClient(${JSON.stringify(endpoint)}, ${JSON.stringify(key)})
container = client.get_database_client(${database}).get_container_client(${container})
rows = container.query_items(
    query=${text},
    parameters=json.loads(${JSON.stringify(list)}),
    enable_cross_partition_query=True,
)
for row in rows:
    print(json.dumps(row))
`;
    case "javascript":
      return `${https ? `// ${pem}\n// export NODE_EXTRA_CA_CERTS=$PWD/emulator.pem\n` : ""}import { CosmosClient } from "@azure/cosmos";

const client = new CosmosClient({ endpoint: ${JSON.stringify(endpoint)}, key: ${JSON.stringify(key)} });
const container = client.database(${database}).container(${container});
const { resources } = await container.items
  .query({ query: ${text}, parameters: ${list} })
  .fetchAll();
console.log(resources);
`;
    case "curl":
      return `${https ? `${pem}\n` : ""}KEY=${shell(key)}
TOKEN=$(curl ${ca}-s -X POST -H "authorization: Bearer $KEY" ${shell(`${endpoint}_admin/v1/session`)} | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')
curl ${ca}-H "authorization: Bearer $TOKEN" \\
  -H 'content-type: application/query+json' -H 'x-ms-documentdb-isquery: true' \\
  -H 'x-ms-documentdb-query-enablecrosspartition: true' \\
  ${shell(`${endpoint.replace(/\/$/, "")}${rest(at)}/docs`)} \\
  -d ${shell(body(asked))}
`;
  }
}

function shell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
