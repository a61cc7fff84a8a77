// Figures and moments as people read them.

const whole = new Intl.NumberFormat("en");
const one = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const two = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

export const count = (value: number): string => whole.format(value);
export const figure = (value: number): string => (value >= 100 ? whole : value >= 10 ? one : two).format(value);

export function counted(value: number, name: string, plural = name + "s"): string {
  return `${count(value)} ${value === 1 ? name : plural}`;
}

/** Short: 12.3k. */
export function short(value: number): string {
  if (value < 10_000) return count(value);
  if (value < 1e6) return one.format(value / 1e3) + "k";
  return one.format(value / 1e6) + "M";
}

export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${one.format(value)} ${units[unit]}`;
}

const UNITS: readonly (readonly [string, number])[] = [
  ["d", 86400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
];

/** Two units of a duration: 3 d 4 h, 12 s. */
export function duration(seconds: number): string {
  seconds = Math.max(0, Math.floor(seconds));
  if (seconds >= 1000 * 86400) return `${one.format(seconds / 86400 / 365.25)} years`;
  const at = UNITS.findIndex(([, size]) => seconds >= size);
  if (at < 0) return "0 s";
  const [name, size] = UNITS[at]!;
  const next = UNITS[at + 1];
  const rest = next ? Math.floor((seconds % size) / next[1]) : 0;
  return `${Math.floor(seconds / size)} ${name}` + (rest && next ? ` ${rest} ${next[0]}` : "");
}

/** A `defaultTtl` as a badge: Off, no default, 7 d. */
export function ttlBadge(ttl: number | null | undefined): string {
  if (ttl === null || ttl === undefined) return "Off";
  return ttl === -1 ? "no default" : exact(ttl);
}

/** A number of seconds in the greatest unit that says it exactly, else in two. */
export function exact(seconds: number): string {
  const found = UNITS.find(([, size]) => seconds % size === 0 && seconds >= size);
  if (!found) return `${seconds} s`;
  const value = seconds / found[1];
  return value < 1000 || found[0] === "d" ? `${whole.format(value)} ${found[0]}` : duration(seconds);
}

/** A moment in Unix seconds, in UTC: 2026-11-19 04:35:21. */
export function moment(second: number): string {
  const date = new Date(second * 1000);
  return Number.isNaN(date.getTime()) ? String(second) : date.toISOString().slice(0, 19).replace("T", " ");
}

/** Only the time of day. */
export function timeOfDay(second: number): string {
  return moment(second).slice(11);
}

/** Names of lifetimes for the ttl controls. */
export const TTL_MAX = 2_147_483_647;

/** A whole number from 1 to the longest time to live, or why it is none. */
export function seconds(text: string, unit: number): number | string {
  const digits = text.trim();
  if (digits === "") return "A number is needed.";
  if (!/^\d+$/.test(digits)) return "Only whole numbers from 1 on.";
  const value = Number(digits) * unit;
  if (value < 1) return "The shortest time to live is 1 second.";
  if (value > TTL_MAX) return `The longest time to live is ${count(TTL_MAX)} seconds (about 68 years).`;
  return value;
}
