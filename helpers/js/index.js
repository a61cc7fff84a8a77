/** A dayfly server for tests. Its clock stands still until a test moves it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

// Runs the server until standard input ends. The tests hold the other end of that pipe,
// so the server goes with them, however they go. Ctrl-C reaches all; the pipe follows.
const LEASH = `
trap '' HUP INT TERM; "$@" & exec >/dev/null; cat; { kill -9 $!; wait; } 2>/dev/null
`;
const SECONDS = { "": 1, s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

/** A new server, with these flags, or else `--memory`. */
export function startDayfly(...flags) {
  return Dayfly.start(...flags);
}

export class Dayfly {
  #process;

  static async start(...flags) {
    const server = new this();
    await server.#start(flags.length ? flags : ["--memory"]);
    await server.freeze();
    return server;
  }

  advance(span) {
    const [, number, unit] = /^(\d+)([smhdw]?)$/.exec(span) ?? [];
    if (!number) throw new RangeError(`${span} is no span of time such as 90 or "90d"`);
    return this.admin("clock", { advanceSeconds: number * SECONDS[unit] });
  }

  freeze() {
    return this.admin("clock", { frozen: true });
  }

  run() {
    return this.admin("clock", { frozen: false });
  }

  async now() {
    return (await this.admin("clock")).now;
  }

  reset() {
    return this.admin("reset", {});
  }

  async admin(call, change) {
    const { port } = new URL(this.endpoint);
    const answer = await fetch(`http://127.0.0.1:${port}/_admin/v1/${call}`, {
      method: change ? "POST" : "GET",
      body: change && JSON.stringify(change),
      headers: { authorization: `Bearer ${this.key}` },
    });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  async stop() {
    if (this.#process.exitCode !== null) return;
    const ended = once(this.#process, "exit");
    this.#process.ref();
    this.#process.stdin.end();
    await ended;
  }

  async #start(flags) {
    const binary = process.env.DAYFLY_BIN || "dayfly";
    // The server takes every DAYFLY_ variable for a setting. Of those, it is given what to log.
    const others = Object.entries(process.env).filter(([name]) => !name.startsWith("DAYFLY_"));
    const env = { ...Object.fromEntries(others), DAYFLY_LOG: process.env.DAYFLY_LOG || "warn" };
    this.#process = spawn(
      "sh",
      ["-c", LEASH, "sh", binary, "--listen", "127.0.0.1:0", "--test-clock", ...flags],
      { stdio: ["pipe", "pipe", "inherit"], env },
    );
    const banner = await this.#banner();
    if (!banner.endsWith("Started\n")) {
      await this.stop();
      const hint = "Is dayfly on the PATH, or in DAYFLY_BIN?";
      throw new Error(`'${binary}' did not start. ${hint}\n${banner}`);
    }
    [this.connectionString, this.endpoint, this.key] =
      /AccountEndpoint=(http:[^;]+);AccountKey=([^;]+);/.exec(banner);
    // A test process that forgets to stop the server ends all the same, and the server with it.
    for (const handle of [this.#process, this.#process.stdin, this.#process.stdout]) handle.unref();
  }

  async #banner() {
    let banner = "";
    for await (const line of createInterface({ input: this.#process.stdout })) {
      banner += `${line}\n`;
      if (line === "Started") break;
    }
    return banner;
  }
}
