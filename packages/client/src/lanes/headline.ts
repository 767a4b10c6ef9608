import type { Cause } from "../index.ts";
import { agoText, clockText, durationText, elapsedText, plural, unknownTime } from "./format.ts";
import { failedTries, firstFailure } from "./loop.ts";
import { currentLoop, failedSince, groupOf, type Lane, lastEnded, usualMs } from "./now.ts";
import { type Loop, lengthOf, lengthText, type Step, stepText } from "./step.ts";

/** The text of a row of Now. */
export type Headline = {
  readonly sign: "succeeded" | "failed" | "canceled" | "unknown" | "running";
  /** "deploy", "build web"; empty if the text is complete. */
  readonly step: string;
  readonly text: string;
  /** "for 4 min · 3 loops" */
  readonly note: string;
};

export function headlineOf(row: Lane, now: number): Headline {
  const group = groupOf(row, now);
  if (group === "lost") {
    const since = row.lostSince ?? row.lastEventAt;
    const text = since === undefined ? "not seen" : `last seen ${clockText(since).slice(0, 5)}`;
    return { sign: "unknown", step: "", text, note: since === undefined ? "" : agoText(now - since) };
  }
  if (group === "failing") return failing(row, now);
  const current = currentLoop(row);
  if (group === "running" && current !== undefined) return running(row, current, now);
  if (row.upstream === "rkt") return pods(row);
  return idle(row, now);
}

/** The loop whose failure is shown: the newest failed one. */
export function failedLoop(row: Lane): Loop | undefined {
  return failedSince(row).at(-1);
}

function failing(row: Lane, now: number): Headline {
  const failed = failedSince(row);
  const newest = failed.at(-1);
  const step = newest === undefined ? undefined : firstFailure(newest.steps);
  const since = failed[0]?.endedAt;
  const times = failed.length > 1 ? ` · ${plural(failed.length, newest?.kind ?? "loop")}` : "";
  const over = row.session === undefined ? " · ended" : "";
  const again = currentLoop(row)?.endedAt === undefined ? " · runs again" : "";
  return {
    sign: "failed",
    step: step === undefined ? (newest === undefined ? "" : nameOf(newest)) : failedText(newest?.steps ?? [], step),
    text: causeText(step ?? newest),
    note: since === undefined ? "" : `for ${forText(now - since)}${times}${again}${over}`,
  };
}

/** "sync web (4 tries)", "deploy" */
export function failedText(steps: readonly Step[], step: Step): string {
  const tries = failedTries(steps, step);
  return tries > 1 ? `${stepText(step)} (${tries} tries)` : stepText(step);
}

/** "vagrant up", "build, deploy"; empty for a loop, which says by its steps what it does. */
function nameOf(loop: Loop): string {
  return loop.kind === "loop" ? "" : stepText(loop);
}

function forText(ms: number): string {
  return agoText(ms) === "just now" ? "a moment" : agoText(ms).replace(/ ago$/, "");
}

function running(row: Lane, current: Loop, now: number): Headline {
  const usual = usualMs(row, current.subject);
  const active = current.steps.findLast(({ endedAt }) => endedAt === undefined);
  const elapsed = lengthOf(current, now);
  const comparison = usual === undefined ? "" : ` (usually ${durationText(usual)})`;
  return {
    sign: "running",
    step: active === undefined ? nameOf(current) || "loop" : stepText(active),
    text: `${elapsed === undefined ? unknownTime : elapsedText(elapsed)}${comparison}`,
    note: "",
  };
}

function idle(row: Lane, now: number): Headline {
  const last = lastEnded(row);
  if (last === undefined) {
    const text = row.session === undefined ? "waits for a process" : "connected; nothing has run yet";
    const note = row.lastEventAt === undefined ? "" : agoText(now - row.lastEventAt);
    return { sign: "unknown", step: "", text, note };
  }
  const age = agoText(now - (last.endedAt ?? now));
  const step = nameOf(last);
  // A command, or a one-shot build, ends with its process.
  const ended = row.session === undefined && last.kind === "loop" ? " · process ended" : "";
  const took = lengthText(last, now);
  const failure = firstFailure(last.steps);
  const went = failure === undefined ? "" : `; ${failedText(last.steps, failure)} failed: ${causeText(failure)}`;
  if (last.outcome === "succeeded") {
    return {
      sign: "succeeded",
      step,
      text: `${last.kind === "loop" ? "ready in" : "done in"} ${took}${went}${ended}`,
      note: age,
    };
  }
  if (last.outcome === "failed") {
    return { sign: "failed", step, text: `${last.cause?.text || `last ${last.kind} failed`}${ended}`, note: age };
  }
  const words = last.outcome === "canceled" ? "was canceled" : "was not seen to end";
  return { sign: last.outcome ?? "unknown", step: "", text: `last ${last.kind} ${words}${went}${ended}`, note: age };
}

/** The pods that run, and of the newest one its apps: an app that failed is not lost among those that came after it. */
function pods(row: Lane): Headline {
  const podOf = (subject: string) => subject.split("/")[0] ?? "";
  const running = new Set([...row.apps].flatMap(([subject, { isRunning }]) => (isRunning ? [podOf(subject)] : [])));
  const newest = podOf([...row.apps.keys()].at(-1) ?? "");
  const own = [...row.apps].filter(([subject]) => podOf(subject) === newest);
  const states = own.map(([subject, { isRunning, exitCode }]) => {
    const name = subject.split("/")[1] ?? subject;
    return isRunning ? `${name} running` : `${name} exited${exitCode === undefined ? "" : ` ${exitCode}`}`;
  });
  const isBad = own.some(([, { isRunning, exitCode = 0 }]) => !isRunning && exitCode !== 0);
  const count = running.size === 0 ? "no pod runs" : plural(running.size, "pod");
  return { sign: isBad ? "canceled" : "succeeded", step: "", text: [count, ...states].join(" · "), note: "" };
}

/** Why it failed, in a line. */
export function causeText(failed: Pick<Step, "cause"> | undefined): string {
  if (failed?.cause === undefined) return "failed";
  return failed.cause?.text || failed.cause?.reason || "failed; the tool gave no reason";
}

/** "src/room.ts:41"; empty where the output names no file. */
export function placeText(cause: Pick<Cause, "file" | "line"> | null | undefined): string {
  if (cause?.file == null) return "";
  return cause.line === null ? cause.file : `${cause.file}:${cause.line}`;
}

/** A part of a bar: where it begins and how long it is, in percent of the bar. */
export type HeadlinePiece = {
  readonly left: number;
  readonly width: number;
  readonly step: Step;
  /** Its name; empty where there is no room, as another piece covers it. */
  readonly label: string;
};

/** The least width of a name, in percent. */
const labelWidth = 12;

export type Bar = {
  readonly pieces: readonly HeadlinePiece[];
  /** Where the loop usually ends, in percent. */
  readonly usual: number | undefined;
};

/** The current loop to scale of its own usual time: one sees whether it is late. */
export function barOf(row: Lane, loop: Loop, now: number): Bar {
  const usual = usualMs(row, loop.subject);
  const length = lengthOf(loop, now) ?? 0;
  const scale = Math.max(length, (usual ?? 0) * 1.25, 1);
  const percent = (ms: number) => Math.min(100, Math.max(0, (ms / scale) * 100));
  const failure = firstFailure(loop.steps);
  // The cause is drawn over what ran beside it.
  const steps = [...loop.steps.filter((step) => step !== failure), failure ?? []].flat();
  if (steps.length === 0) steps.push(loop);
  const pieces = steps.map((step) => {
    return { step, left: percent(step.startedAt - loop.startedAt), width: percent(lengthOf(step, now) ?? 0) };
  });
  const isFree = (left: number, index: number) =>
    pieces.every((other, at) => at <= index || other.left >= left + labelWidth);
  return {
    pieces: pieces.map((piece, index) => ({
      ...piece,
      label: piece.width > labelWidth && isFree(piece.left, index) ? stepText(piece.step) : "",
    })),
    usual: usual === undefined ? undefined : percent(usual),
  };
}
