// JSON as text. A number that a browser would round (9007199254740993), or write in another way
// (10.0, 1e3), and half of a surrogate pair must come out as they went in. So nothing here becomes
// a value unless somebody asks for it: a node knows where its text stands.

export interface Member {
  /** The name as it reads. */
  name: string;
  /** The name as it is written, with its quotes. */
  written: string;
  value: Node;
}

export type Node = { start: number; end: number } & (
  | { kind: "object"; members: Member[] }
  | { kind: "array"; elements: Node[] }
  | { kind: "string" | "number" | "boolean" | "null" }
);

/** Why a text is no JSON, and where. */
export class JsonError extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message);
  }
}

const DEPTH_MAX = 512;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const BLANK = /[ \t\n\r]*/y;
// Control characters are taken as they are: the server does so too.
const STRING = /"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const WORD = /true|false|null/y;

/** A text that was read, or a value in it. */
export class Json {
  readonly root: Node;

  constructor(
    readonly text: string,
    root?: Node,
  ) {
    this.root = root ?? new Reader(text).whole();
  }

  /** A value in this text, by itself. */
  within(node: Node): Json {
    return new Json(this.text, node);
  }

  /** The text of a node, as it is written. */
  raw(node: Node): string {
    return this.text.slice(node.start, node.end);
  }

  /** What a member of an object is; of two with one name the last counts, as in the server. */
  member(name: string, of: Node = this.root): Node | undefined {
    if (of.kind !== "object") return undefined;
    return of.members.findLast((member) => member.name === name)?.value;
  }

  /** What stands at the end of a path of names. */
  at(path: readonly string[], of: Node = this.root): Node | undefined {
    let node: Node | undefined = of;
    for (const name of path) node = node && this.member(name, node);
    return node;
  }

  elements(of: Node | undefined = this.root): Node[] {
    return of?.kind === "array" ? of.elements : [];
  }

  /** A string as it reads; undefined for anything else. */
  string(node: Node | undefined): string | undefined {
    return node?.kind === "string" ? unquoted(this.raw(node)) : undefined;
  }

  /** A number, maybe rounded; undefined for anything else. */
  number(node: Node | undefined): number | undefined {
    return node?.kind === "number" ? Number(this.raw(node)) : undefined;
  }
}

/** A text that may be no JSON. */
export function read(text: string): Json | JsonError {
  try {
    return new Json(text);
  } catch (error) {
    if (error instanceof JsonError) return error;
    throw error;
  }
}

class Reader {
  private at = 0;
  private depth = 0;

  constructor(private readonly text: string) {}

  whole(): Node {
    const node = this.value();
    this.blank();
    if (this.at < this.text.length) throw this.error("Here the JSON has ended already.");
    return node;
  }

  private value(): Node {
    this.blank();
    const start = this.at;
    switch (this.text[start]) {
      case "{":
        return this.nested(() => this.object(start));
      case "[":
        return this.nested(() => this.array(start));
      case '"':
        this.string();
        return { kind: "string", start, end: this.at };
      case "t":
      case "f":
      case "n": {
        const word = this.take(WORD);
        if (!word) break;
        return { kind: word === "null" ? "null" : "boolean", start, end: this.at };
      }
      default:
        if (!this.take(NUMBER)) break;
        return { kind: "number", start, end: this.at };
    }
    throw this.error(
      start < this.text.length ? "A value is expected here." : "The JSON ends too early.",
    );
  }

  private nested(read: () => Node): Node {
    if (++this.depth > DEPTH_MAX) throw this.error("This is nested too deeply.");
    const node = read();
    this.depth--;
    return node;
  }

  private object(start: number): Node {
    const members: Member[] = [];
    this.at++;
    if (this.sees("}")) return { kind: "object", members, start, end: this.at };
    do {
      this.blank();
      const written = this.string();
      if (!this.sees(":")) throw this.error("A colon is expected here.");
      members.push({ name: unquoted(written), written, value: this.value() });
    } while (this.sees(","));
    if (!this.sees("}")) throw this.error("A comma or } is expected here.");
    return { kind: "object", members, start, end: this.at };
  }

  private array(start: number): Node {
    const elements: Node[] = [];
    this.at++;
    if (this.sees("]")) return { kind: "array", elements, start, end: this.at };
    do elements.push(this.value());
    while (this.sees(","));
    if (!this.sees("]")) throw this.error("A comma or ] is expected here.");
    return { kind: "array", elements, start, end: this.at };
  }

  private string(): string {
    const string = this.take(STRING);
    if (string === undefined) throw this.error("A string in double quotes is expected here.");
    return string;
  }

  private sees(character: string): boolean {
    this.blank();
    if (this.text[this.at] !== character) return false;
    this.at++;
    return true;
  }

  private blank(): void {
    this.take(BLANK);
  }

  private take(what: RegExp): string | undefined {
    what.lastIndex = this.at;
    const found = what.exec(this.text)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  private error(message: string): JsonError {
    return new JsonError(message, this.at);
  }
}

/**
 * Where half of a surrogate pair stands in a JSON text, by itself or escaped. No UTF-8 has it, so the
 * server refuses it.
 */
export function half(text: string): number | undefined {
  let open: { at: number; end: number; escaped: boolean } | undefined;
  for (const { 0: found, 1: code, index } of text.matchAll(/\\(?:u([0-9a-fA-F]{4})|.)|[\ud800-\udfff]/gs)) {
    const escaped = found.length > 1;
    const unit = code ? parseInt(code, 16) : escaped ? 0 : found.charCodeAt(0);
    const isLow = unit >= 0xdc00 && unit < 0xe000;
    if (open) {
      if (!isLow || open.end !== index || open.escaped !== escaped) return open.at;
      open = undefined;
    } else if (isLow) {
      return index;
    } else if (unit >= 0xd800 && unit < 0xdc00) {
      open = { at: index, end: index + found.length, escaped };
    }
  }
  return open?.at;
}

/** What is said of it. */
export const HALF = "Half of a surrogate pair: the server takes no such text.";

const ESCAPES: Record<string, string> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** What a string with its quotes reads. */
export function unquoted(written: string): string {
  const inner = written.slice(1, -1);
  if (!inner.includes("\\")) return inner;
  return inner.replace(/\\(?:u(....)|(.))/g, (_, code?: string, one?: string) =>
    code ? String.fromCharCode(parseInt(code, 16)) : (ESCAPES[one ?? ""] ?? one ?? ""),
  );
}

/** A string as JSON in ASCII, so that it can stand in a header, halves of pairs included. */
export function quoted(text: string): string {
  return ascii(JSON.stringify(text));
}

/** JSON with everything beyond ASCII escaped; it means the same. */
export function ascii(json: string): string {
  return json.replace(
    /[^ -~]/g,
    (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0"),
  );
}

/** The same tokens, laid out for people. */
export function indented(json: Json, node: Node = json.root, depth = 0): string {
  const out: string[] = [];
  write(json, node, depth, out);
  return out.join("");
}

function write(json: Json, node: Node, depth: number, out: string[]): void {
  const list = node.kind === "object" ? node.members : node.kind === "array" ? node.elements : null;
  if (!list) {
    out.push(json.raw(node));
    return;
  }
  const [open, close] = node.kind === "object" ? "{}" : "[]";
  if (list.length === 0) {
    out.push(open!, close!);
    return;
  }
  const indent = "\n" + "  ".repeat(depth + 1);
  list.forEach((entry, index) => {
    out.push(index === 0 ? open! : ",", indent);
    if ("written" in entry) {
      out.push(entry.written, ": ");
      write(json, entry.value, depth + 1, out);
    } else {
      write(json, entry, depth + 1, out);
    }
  });
  out.push("\n", "  ".repeat(depth), close!);
}

/** The same tokens, without blanks between them; of an object, only some members. */
export function compact(json: Json, keeps: (name: string) => boolean = () => true): string {
  const out: string[] = [];
  const { root } = json;
  const node = root.kind === "object" ? { ...root, members: root.members.filter(({ name }) => keeps(name)) } : root;
  pack(json, node, out);
  return out.join("");
}

function pack(json: Json, node: Node, out: string[]): void {
  if (node.kind === "object") {
    node.members.forEach(({ written, value }, at) => {
      out.push(at === 0 ? "{" : ",", written, ":");
      pack(json, value, out);
    });
    out.push(node.members.length === 0 ? "{}" : "}");
  } else if (node.kind === "array") {
    node.elements.forEach((value, at) => {
      out.push(at === 0 ? "[" : ",");
      pack(json, value, out);
    });
    out.push(node.elements.length === 0 ? "[]" : "]");
  } else {
    out.push(json.raw(node));
  }
}

/** An object with some members left out, laid out for people; the rest keeps its tokens. */
export function without(json: Json, leaveOut: (name: string) => boolean): string {
  if (json.root.kind !== "object") return indented(json);
  const members = json.root.members.filter((member) => !leaveOut(member.name));
  return indented(json, { ...json.root, members });
}

/** An object with a member set to a text, or taken away; the rest keeps its tokens. */
export function withMember(text: string, name: string, value: string | undefined): string {
  const json = new Json(text);
  if (json.root.kind !== "object") return text;
  const known = json.root.members.filter((member) => member.name === name);
  const members = json.root.members.filter((member) => member.name !== name);
  const parts = members.map((member) => `${member.written}:${json.raw(member.value)}`);
  const place = known[0] ? json.root.members.indexOf(known[0]) : parts.length;
  if (value !== undefined) parts.splice(place, 0, `${JSON.stringify(name)}:${value}`);
  return `{${parts.join(",")}}`;
}

/** The beginning of a text, without half of a pair at its end. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? length - 1 : length) + "…";
}

const SYSTEM = new Set(["_rid", "_self", "_etag", "_attachments", "_ts"]);

/** Whether a property is the server's. */
export function isSystem(name: string): boolean {
  return SYSTEM.has(name);
}
