import { durationText, unknownTime } from "@tapedeck/client/lanes/format";
import { isPossible } from "@tapedeck/client/lanes/lasted";
import { ticksOf } from "@tapedeck/client/lanes/loop";
import { type Repeated, repeatsOf } from "@tapedeck/client/lanes/repeats";
import { lengthText, type Step, stepText } from "@tapedeck/client/lanes/step";
import { type Wait, waitedFor, waitsOf } from "@tapedeck/client/lanes/waits";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type DisplayedOutcome, displayedOutcome, outcomeWord } from "./small.tsx";

export type WaterfallProps = {
  readonly steps: readonly Step[];
  readonly from: number;
  readonly to: number;
  /** For steps that still run. */
  readonly now: number;
  readonly selected?: Step | undefined;
  readonly select?: (step: Step) => void;
};

const rowHeight = 24;
const axisHeight = 22;
/** The most that names take; longer ones are cut. */
const maxNameWidth = 128;
const tickWidth = 72;

/** Steps on a common axis, drawn on a canvas. The table beside it has the same for screen readers. */
export function Waterfall({ steps: allSteps, from: begin, to, now, selected, select }: WaterfallProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  // Channels report steps that follow at once in another order.
  const steps = allSteps.toSorted((a, b) => a.startedAt - b.startedAt);
  // What began at an unknown time is drawn at the first known one.
  const from = [begin, ...steps.map(({ startedAt }) => startedAt), to].find(isPossible) ?? begin;
  const waits = waitsOf(steps, { from, to, now });
  const rows = repeatsOf(steps);
  const height = axisHeight + Math.max(1, rows.length) * rowHeight;

  useLayoutEffect(() => {
    const box = canvas.current?.parentElement;
    if (!box) return;
    const sized = new ResizeObserver(() => setWidth(box.clientWidth));
    sized.observe(box);
    setWidth(box.clientWidth);
    return () => sized.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = canvas.current;
    if (element && width > 0) draw(element, { steps, rows, from, to, now, selected, waits, width, height });
  });

  return (
    <div class="waterfall">
      <canvas
        ref={canvas}
        onClick={(click) => {
          const at = Math.floor((click.offsetY - axisHeight) / rowHeight);
          const step = rows[at]?.steps.at(-1);
          if (step !== undefined) select?.(step);
        }}
      />
      {/* A table itself is never narrower than its words. */}
      <div class="hidden">
        <table>
          <caption>Steps and how long they took</caption>
          <thead>
            <tr>
              <th scope="col">step</th>
              <th scope="col">outcome</th>
              <th scope="col">began after</th>
              <th scope="col">took</th>
              <th scope="col">waited for</th>
            </tr>
          </thead>
          <tbody>
            {steps.map((step) => (
              <tr key={step.position}>
                <th scope="row">{stepText(step)}</th>
                <td>{step.isCached ? "cached" : outcomeWord(displayedOutcome(step))}</td>
                <td>{isPossible(step.startedAt) ? durationText(step.startedAt - from) : unknownTime}</td>
                <td>{lengthText(step, now)}</td>
                <td>{waitedText(step, waits)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function waitedText(step: Step, waits: readonly Wait[]): string {
  const ms = waitedFor(step, waits);
  return ms === 0 ? "no" : durationText(ms);
}

type Drawn = WaterfallProps & {
  readonly rows: readonly Repeated[];
  readonly waits: readonly Wait[];
  readonly width: number;
  readonly height: number;
};

/** Clears the canvas, and gives it as many pixels as its size has on this screen. */
function resized(canvas: HTMLCanvasElement, { width, height }: Drawn): CanvasRenderingContext2D | null {
  const scale = devicePixelRatio;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context?.scale(scale, scale);
  return context;
}

function draw(canvas: HTMLCanvasElement, drawn: Drawn): void {
  const { width, height, rows, steps } = drawn;
  const context = resized(canvas, drawn);
  if (context === null) return;
  const style = getComputedStyle(canvas);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const font = (weight: number) => `${weight} 12px ${style.fontFamily}`;
  const tookOf = (step: Step) => (step.isCached ? "cached" : lengthText(step, drawn.now));
  context.font = font(400);
  // The longest bar may reach the end: what it took stands behind it.
  const widest = Math.max(...steps.map((step) => context.measureText(tookOf(step)).width));
  context.font = font(600);
  const longestName = Math.max(...rows.map((row) => context.measureText(nameOf(row)).width));
  context.font = font(400);
  const nameWidth = Math.min(maxNameWidth, Math.ceil(longestName) + 16);
  const room = width - nameWidth - Math.max(64, widest + 8);
  const length = Math.max(1, drawn.to - drawn.from);
  const isLast = (step: Step) => rows.some((row) => row.steps.at(-1) === step);
  const x = (time: number) => nameWidth + ((time - drawn.from) / length) * room;

  context.textBaseline = "middle";
  // Under the lines of the axis.
  const { selected } = drawn;
  const chosen = selected === undefined ? -1 : rows.findIndex((row) => row.steps.includes(selected));
  if (chosen >= 0) {
    context.fillStyle = colour("raised");
    context.fillRect(0, axisHeight + chosen * rowHeight, width, rowHeight);
  }
  for (const tick of ticksOf(length, Math.max(2, Math.floor(room / tickWidth)))) {
    context.fillStyle = colour("line");
    context.fillRect(Math.round(x(drawn.from + tick)), axisHeight - 4, 1, height);
    context.fillStyle = colour("quiet");
    context.fillText(tick === 0 ? "0" : durationText(tick), x(drawn.from + tick) + 4, axisHeight / 2);
  }
  for (const [index, row] of rows.entries()) {
    const y = axisHeight + index * rowHeight;
    const outcome = outcomeOf(row);
    context.font = font(outcome === "failed" ? 600 : 400);
    context.fillStyle = colour(outcome === "failed" ? "bad" : "text");
    context.fillText(fitted(context, nameOf(row), nameWidth - 12), 4, y + rowHeight / 2);
    context.font = font(400);
    for (const step of row.steps) drawStep(step, y);
  }

  function drawStep(step: Step, y: number): void {
    if (context === null) return;
    const left = Math.max(nameWidth, x(step.startedAt));
    const right = x(step.endedAt ?? drawn.now);
    context.fillStyle = colour(step.isCached ? "cached" : barColours[displayedOutcome(step)]);
    context.fillRect(left, y + 6, Math.max(3, right - left), rowHeight - 12);
    context.fillStyle = colour("text");
    for (const wait of drawn.waits) {
      if (wait.step !== step) continue;
      context.fillRect(x(wait.from), y + rowHeight - 5, Math.max(1, x(wait.to) - x(wait.from)), 2);
    }
    context.fillStyle = colour("quiet");
    const duration = tookOf(step);
    const end = Math.max(3, right - left) + left + 6;
    const hasRoom = end + context.measureText(duration).width <= width;
    context.textAlign = hasRoom ? "left" : "right";
    // Between two tries there may be no room.
    if (isLast(step)) context.fillText(duration, hasRoom ? end : left - 6, y + rowHeight / 2);
    context.textAlign = "left";
  }
}

const barColours = {
  succeeded: "good-bar",
  failed: "bad-bar",
  running: "running-bar",
  canceled: "unknown-bar",
  unknown: "unknown-bar",
} as const;

/** How it went in the end. */
function outcomeOf({ steps }: Repeated): DisplayedOutcome {
  const last = steps.at(-1);
  return last === undefined ? "unknown" : displayedOutcome(last);
}

function nameOf(row: Repeated): string {
  return `${outcomeOf(row) === "failed" ? "✕ " : ""}${row.text}`;
}

function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length)}…`;
}
