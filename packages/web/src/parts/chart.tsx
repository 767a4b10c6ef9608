import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Series } from "../model/trends/figures.ts";
import { axisWidth, linesUpTo, namedBins, type Unit } from "./chart-axes.ts";
import { useColours } from "./colours.ts";

export type Drawn = {
  readonly name: string;
  readonly values: Series;
  /** A colour of the page by its name, or as "#rrggbb". */
  readonly colour: string;
  readonly width?: number;
  readonly isDashed?: boolean;
};

export type ChartProps = {
  readonly label: string;
  readonly shape: "lines" | "bars";
  readonly unit: Unit;
  readonly series: readonly Drawn[];
  /** The axis' label of each bin. */
  readonly ticks: readonly string[];
  /** A bin in words, with its numbers. */
  readonly describe: (bin: number) => string;
  readonly format: (value: number) => string;
  /** The bin under the pointer. */
  readonly at: number | undefined;
  readonly point: (bin: number | undefined) => void;
  readonly picked: readonly [first: number, last: number] | undefined;
  readonly pick: (first: number, last: number) => void;
};

const height = 148;

/**
 * A chart over bins. A click picks a bin and a drag a range; so do the arrow keys (with Shift) and Enter. A table beside it
 * has the numbers.
 */
export function Chart(props: ChartProps) {
  const { label, ticks, at, point, picked, pick, describe } = props;
  const box = useRef<HTMLDivElement>(null);
  const colours = useColours();
  const width = useWidth(box);
  const plot = useRef<uPlot>();
  const latest = useRef(props);
  latest.current = props;
  const anchor = useRef<number>();
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || width === 0) return;
    const drawn = new uPlot(optionsOf(latest, width, colours), dataOf(latest.current), element);
    plot.current = drawn;
    return () => {
      plot.current = undefined;
      drawn.destroy();
    };
  }, [width, colours, props.series, ticks]);
  useLayoutEffect(() => plot.current?.redraw(false), [at, picked?.[0], picked?.[1]]);
  const last = ticks.length - 1;
  const pressed = (event: KeyboardEvent) => {
    const steps = new Map(Object.entries({ ArrowLeft: -1, ArrowRight: 1, Home: -ticks.length, End: ticks.length }));
    const step = steps.get(event.key);
    if (event.key === "Enter" && at !== undefined) {
      const from = anchor.current ?? at;
      pick(Math.min(from, at), Math.max(from, at));
    }
    if (step === undefined) return;
    event.preventDefault();
    if (!event.shiftKey) anchor.current = undefined;
    else anchor.current ??= at ?? last;
    point(Math.max(0, Math.min(last, (at ?? last + 1) + step)));
  };
  return (
    <div
      class="chart"
      ref={box}
      role="slider"
      tabIndex={0}
      aria-label={`${label}. Left and right choose a time, Enter lists its loops`}
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={at ?? last}
      aria-valuetext={describe(at ?? last)}
      onKeyDown={pressed}
      onBlur={() => point(undefined)}
    />
  );
}

function useWidth(box: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const sized = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    sized.observe(element);
    setWidth(Math.floor(element.clientWidth));
    return () => sized.disconnect();
  }, []);
  return width;
}

function dataOf({ series, ticks }: ChartProps): uPlot.AlignedData {
  return [ticks.map((_, index) => index), ...series.map(({ values }) => [...values])] as uPlot.AlignedData;
}

type Colour = (name: string) => string;

function optionsOf(latest: { readonly current: ChartProps }, width: number, colour: Colour): uPlot.Options {
  const { series, ticks, unit, shape, format } = latest.current;
  const max = Math.max(0, ...series.flatMap(({ values }) => values.filter((value) => value !== null)));
  const lines = linesUpTo(max, unit);
  const names = lines.map((value) => (value === 0 ? "0" : format(value)));
  const namesWidth = axisWidth(names);
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const axis = { stroke: colour("quiet"), font, ticks: { show: false }, gap: 4 } as const;
  let wasDragged = false;
  return {
    width,
    height,
    padding: [8, 16, 0, 0],
    legend: { show: false },
    scales: {
      x: { time: false, range: [-0.5, ticks.length - 0.5] },
      y: { range: [0, (lines.at(-1) ?? 1) * 1.02] },
    },
    axes: [
      {
        ...axis,
        size: 24,
        grid: { show: false },
        splits: () => [...namedBins(ticks.length, width - namesWidth - 4, 64)],
        values: (_, splits) => splits.map((bin) => ticks[bin] ?? ""),
      },
      {
        ...axis,
        size: namesWidth,
        grid: { stroke: colour("line"), width: 1 },
        splits: () => [...lines],
        values: () => names,
      },
    ],
    series: [
      {},
      ...series.map((one) => seriesOf(one, { shape, bins: ticks.length, isStacked: series.length > 1, colour })),
    ],
    cursor: {
      y: false,
      x: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false, dist: 6 },
    },
    hooks: {
      drawClear: [(plot) => drawMarks(plot, latest.current, colour)],
      setCursor: [
        ({ cursor }) => {
          const { at, point } = latest.current;
          // Leaving by the pointer; what the keyboard chose stays.
          if (cursor.idx == null ? cursor.left === -10 && at !== undefined : cursor.idx !== at) {
            point(cursor.idx ?? undefined);
          }
        },
      ],
      setSelect: [
        (plot) => {
          if (plot.select.width === 0) return;
          const bin = (left: number) => Math.round(plot.posToVal(left, "x"));
          const within = (index: number) => Math.max(0, Math.min(ticks.length - 1, index));
          latest.current.pick(within(bin(plot.select.left)), within(bin(plot.select.left + plot.select.width)));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          wasDragged = true;
        },
      ],
      ready: [
        (plot) =>
          plot.over.addEventListener("click", () => {
            const { idx } = plot.cursor;
            if (!wasDragged && idx != null) latest.current.pick(idx, idx);
            wasDragged = false;
          }),
      ],
    },
  };
}

type Style = Pick<ChartProps, "shape"> & {
  readonly bins: number;
  readonly isStacked: boolean;
  readonly colour: Colour;
};

function seriesOf(one: Drawn, { shape, bins, isStacked, colour }: Style): uPlot.Series {
  const own = one.colour.startsWith("#") ? one.colour : colour(one.colour);
  if (shape === "bars") {
    const bars = uPlot.paths.bars?.({ size: [0.78, 40] });
    // A thin line of the page parts what stands on top of each other.
    const line = isStacked ? { stroke: colour("page"), width: 1 } : { stroke: own, width: 0 };
    return { label: one.name, fill: own, ...line, points: { show: false }, ...(bars && { paths: bars }) };
  }
  return {
    label: one.name,
    stroke: own,
    width: one.width ?? 1.5,
    ...(one.isDashed && { dash: [4, 3] }),
    // Times in which nothing happened are no gap in a line, and a line of one point is a point.
    spanGaps: true,
    points: { show: bins <= 62, size: 5, fill: own, width: 0 },
  };
}

/** Marks the picked bins and the one under the pointer, behind the lines. */
function drawMarks(plot: uPlot, { at, picked }: ChartProps, colour: Colour): void {
  const { ctx, bbox } = plot;
  const edge = (bin: number) => plot.valToPos(bin, "x", true);
  const mark = (first: number, last: number, name: string) => {
    ctx.fillStyle = colour(name);
    ctx.fillRect(edge(first - 0.5), bbox.top, edge(last + 0.5) - edge(first - 0.5), bbox.height);
  };
  ctx.save();
  if (picked !== undefined) mark(...picked, "picked");
  if (at !== undefined) mark(at, at, picked !== undefined && at >= picked[0] && at <= picked[1] ? "line" : "raised");
  ctx.restore();
}
