/** What the clock is moved by: seconds, or a text such as "45s", "30m", "12h", "90d", "2w". */
export type Span = number | `${number}` | `${number}${"s" | "m" | "h" | "d" | "w"}`;

/** Starts a server, with these flags, or else with `--memory`. */
export function startDayfly(...flags: string[]): Promise<Dayfly>;

/** A running server. Its clock stands still until a test moves it. */
export class Dayfly {
  static start<T extends typeof Dayfly>(this: T, ...flags: string[]): Promise<InstanceType<T>>;

  /** Such as `http://localhost:40123/`. */
  readonly endpoint: string;
  readonly key: string;
  readonly connectionString: string;

  /** Moves the clock forward, without waiting. */
  advance(span: Span): Promise<unknown>;
  /** Stops the clock; it moves by `advance` alone. */
  freeze(): Promise<unknown>;
  /** Lets the clock run, from where it is. */
  run(): Promise<unknown>;
  /** What the clock shows, in seconds since 1970. */
  now(): Promise<number>;
  /** Removes all databases. The clock stays where it is. */
  reset(): Promise<unknown>;
  /** Any call of the admin API, such as `admin("containers/shop/carts/ttl")`. */
  admin(call: string, change?: object): Promise<any>;
  /** Ends the server. One that is not stopped ends with this process. */
  stop(): Promise<void>;
}
