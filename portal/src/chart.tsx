// Lines over time, drawn by uPlot, in the colours of the page.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import sheetText from "uplot/dist/uPlot.min.css";
import { figure, timeOfDay } from "./words";

const sheet = new CSSStyleSheet();
sheet.replaceSync(sheetText);
document.adoptedStyleSheets.push(sheet);

interface Props {
  now: number;
  seconds: number;
  lines: readonly (readonly number[])[];
  names: readonly string[];
  kinds: readonly string[];
  height?: number;
}

const HEIGHT = 120;

export function Chart({ now, seconds, lines, names, kinds, height = HEIGHT }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shown = data(now, seconds, lines);
  useEffect(() => {
    const at = place.current;
    if (!at) return undefined;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(at.clientWidth, height, names, kinds, now, seconds), shown, at);
    };
    draw();
    const size = new ResizeObserver(() => plot.current?.setSize({ width: at.clientWidth, height }));
    size.observe(at);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => {
      size.disconnect();
      scheme.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(() => {
    plot.current?.batch(() => {
      plot.current?.setData(shown, false);
      plot.current?.setScale("x", { min: now - seconds, max: now });
      plot.current?.setScale("y", { min: 0, max: top(lines) });
    });
  });
  const last = lines.map((line, index) => `${names[index]} ${figure(line.at(-1) ?? 0)}`).join(", ");
  return (
    <>
      <div class="chart" ref={place} role="img" aria-label={`Now: ${last}`} />
      {names.length > 1 && (
        <p class="legend" aria-hidden="true">
          {names.map((name, index) => (
            <span key={name}>
              <span class={`key ${kinds[index] ?? "main"}`} /> {name} {figure(lines[index]?.at(-1) ?? 0)}{" "}
            </span>
          ))}
        </p>
      )}
    </>
  );
}

function top(lines: readonly (readonly number[])[]): number {
  const most = Math.max(1, ...lines.map((line) => line.reduce((a, b) => Math.max(a, b), 0)));
  return most * 1.08;
}

function data(now: number, seconds: number, lines: readonly (readonly number[])[]): uPlot.AlignedData {
  const known = lines[0]?.length ?? 0;
  const from = now - known + 1;
  const times = Array.from({ length: Math.min(known, seconds) }, (_, at) => from + at);
  return [times, ...lines.map((line) => [...line])];
}

function options(
  width: number,
  height: number,
  names: readonly string[],
  kinds: readonly string[],
  now: number,
  seconds: number,
): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const probe = (name: string) => resolved(colour(name));
  const grid = { stroke: probe("--line"), width: 1 };
  const font = "11px system-ui, sans-serif";
  const soft = probe("--soft");
  return {
    width,
    height,
    pxAlign: 1,
    legend: { show: false },
    cursor: { y: false, points: { size: 5 }, drag: { x: false, y: false } },
    scales: { x: { time: false, min: now - seconds, max: now }, y: { min: 0, max: 1 } },
    axes: [
      {
        stroke: soft,
        font,
        grid: { show: false },
        ticks: { show: false },
        size: 22,
        gap: 2,
        space: 80,
        values: (_, splits) => splits.map((at) => timeOfDay(at).slice(0, seconds > 120 ? 5 : 8)),
        incrs: [15, 30, 60, 300, 900, 3600],
      },
      {
        stroke: soft,
        font,
        grid,
        ticks: { show: false },
        size: 42,
        gap: 4,
        space: 28,
        values: (_, splits) => splits.map((at) => figure(at)),
      },
    ],
    series: [
      {},
      ...names.map((label, index) => ({
        label,
        stroke: probe(`--chart-${kinds[index] ?? "main"}`),
        width: 1.5,
        points: { show: false },
        ...(index === 0 ? { fill: probe(`--chart-${kinds[0] ?? "main"}-fill`) } : {}),
      })),
    ],
  };
}

/** A colour that the canvas understands: light-dark() is only for style sheets. */
function resolved(colour: string): string {
  const probe = document.createElement("span");
  probe.style.color = colour;
  document.body.append(probe);
  const told = getComputedStyle(probe).color;
  probe.remove();
  return told;
}
