import { nanosOfTimestamp } from "@tapedeck/shared/time/timestamp";
import type { FinishedLoopRow, OperationRow } from "../../db/schema.ts";
import { millisecondsBetween, timestampOf } from "../../db/timestamp.ts";
import { cancelled, causeColumnsOf } from "../causes/cause-columns.ts";
import { type LoopPhase, type LoopSpan, phases, type Wait, waitsOf } from "./timeline.ts";

const yearMs = 366 * 24 * 3_600_000;

/** A loop is known by these. */
export type LoopKey = Pick<OperationRow, "session" | "runner" | "loop">;

export function loopName({ session, runner, loop }: LoopKey): string {
  return JSON.stringify([session, runner, loop]);
}

/**
 * The row of a loop, from its operations. Undefined while it runs, or if its beginning was not recorded.
 * `nextStart`: when the next loop of the same runner began.
 */
export function finishedLoop(
  operations: readonly OperationRow[],
  nextStart: OperationRow | undefined,
): FinishedLoopRow | undefined {
  const own = operations.filter(({ injected }) => !injected);
  const loop = own.find(({ kind }) => kind === "loop");
  const began = loop && nanosOf(loop.started_at, loop.started_ns);
  if (loop?.started_at == null || loop.outcome === null || began === undefined) return undefined;
  const inside = own.filter(({ kind }) => isPhase(kind));
  // A loop whose times can't both be right has no waits either.
  const ended = loop.duration_ms === null ? undefined : nanosOf(loop.ended_at, loop.ended_ns);
  const waits = ended === undefined ? undefined : waitsOf(lengthOf(began, ended), spansOf(inside, began, ended));
  // A sync may fail, and Skaffold go on.
  const mayFail = loop.outcome === "failed" || loop.outcome === "succeeded";
  const cause = mayFail ? firstFailed(own.filter(({ kind }) => kind !== "loop")) : undefined;
  // Without a subject, all of them failed together, before any began.
  const builds = inside.filter(({ kind, subject }) => kind === "build" && subject !== "");
  const end = { at: ended === undefined ? null : loop.ended_at, ns: loop.ended_ns };
  const { source, workspace, developer, project, upstream, id, session, runner, iteration, outcome } = loop;
  return {
    source,
    workspace,
    developer,
    project,
    upstream,
    id,
    session,
    runner,
    loop: loop.loop,
    iteration,
    outcome,
    started_at: loop.started_at,
    ended_at: loop.ended_at,
    duration_ms: loop.duration_ms,
    failed_phase: cause?.kind ?? "",
    failed_subject: cause?.subject ?? "",
    ...errorOf(loop, cause),
    ...causeColumnsOf(cause ?? loop),
    ...(Object.fromEntries(
      [...phases, "other" as const].map((phase) => [`${phase}_ms`, waited(waits, phase)]),
    ) as Waited),
    builds: builds.filter(({ cache_hit }) => !cache_hit).length,
    cached: builds.filter(({ cache_hit }) => cache_hit).length,
    waits: waits ?? [],
    next_after_ms:
      nextStart === undefined
        ? null
        : millisecondsBetween(end, { at: nextStart.started_at, ns: nextStart.started_ns }, yearMs),
    start_position: loop.start_position,
    end_position: loop.end_position ?? loop.start_position,
  };
}

type Waited = Pick<FinishedLoopRow, `${LoopPhase | "other"}_ms`>;

function waited(waits: readonly Wait[] | undefined, ofPhase: LoopPhase | "other"): number | null {
  if (waits === undefined) return null;
  return waits.reduce((sum, { phase, from_ms, to_ms }) => (phase === ofPhase ? sum + to_ms - from_ms : sum), 0);
}

/** An operation without an end lasted as long as its loop, and a failed sync until it is tried again. */
function spansOf(operations: readonly OperationRow[], began: bigint, ended: bigint): readonly LoopSpan[] {
  const nextSync = new Map<string, bigint>();
  return operations
    .toSorted((a, b) => b.start_position - a.start_position)
    .flatMap((operation) => {
      const { kind, subject, outcome, cache_hit, started_at, started_ns, ended_at, ended_ns, duration_ms } = operation;
      const from = nanosOf(started_at, started_ns);
      if (cache_hit || from === undefined || !isPhase(kind)) return [];
      // Nobody knows when it ran.
      if (ended_at !== null && duration_ms === null) return [];
      const again = kind === "sync" && outcome === "failed" ? nextSync.get(subject) : undefined;
      if (kind === "sync") nextSync.set(subject, from);
      const to = again ?? nanosOf(ended_at, ended_ns) ?? ended;
      return [{ phase: kind, subject, from: Number(from - began), to: Number(to - began) }];
    });
}

/**
 * Skaffold ends the other builds when one fails, and a deploy when its check does: the first to end is the cause. A step
 * that succeeded when it was tried again is none, and one that was stopped because of another only where that is not known.
 */
export function firstFailed(operations: readonly OperationRow[]): OperationRow | undefined {
  const endOf = ({ ended_at, ended_ns }: OperationRow) => nanosOf(ended_at, ended_ns) ?? 0n;
  const phaseOf = ({ kind }: OperationRow) => phases.indexOf(kind as LoopPhase);
  const stepOf = ({ kind, subject }: OperationRow) => JSON.stringify([kind, subject]);
  const wasStopped = ({ reason }: OperationRow) => reason === cancelled;
  const inOrder = operations.toSorted((a, b) => a.start_position - b.start_position);
  const lastOutcome = new Map(inOrder.map((operation) => [stepOf(operation), operation.outcome]));
  return inOrder
    .filter((operation) => operation.outcome === "failed" && lastOutcome.get(stepOf(operation)) !== "succeeded")
    .toSorted(
      (a, b) => Number(wasStopped(a)) - Number(wasStopped(b)) || Number(endOf(a) - endOf(b)) || phaseOf(b) - phaseOf(a),
    )[0];
}

/** The loop's own error may be UNKNOWN_ERROR, or name the deploy where the check failed. */
function errorOf(loop: OperationRow, cause: OperationRow | undefined): Pick<OperationRow, "error_code" | "error"> {
  const isKnown = ({ error_code }: OperationRow) => !["", "OK", "UNKNOWN_ERROR"].includes(error_code);
  const { error_code } = cause !== undefined && (isKnown(cause) || !isKnown(loop)) ? cause : loop;
  return { error_code, error: cause?.error || loop.error };
}

function isPhase(kind: string): kind is LoopPhase {
  return (phases as readonly string[]).includes(kind);
}

function nanosOf(at: string | null, ns: number): bigint | undefined {
  const timestamp = timestampOf(at, ns);
  return timestamp && nanosOfTimestamp(timestamp);
}

/** Parallel senders may stamp an end before its start, which counts as 0. */
function lengthOf(from: bigint, to: bigint): number {
  return Math.max(0, Number(to - from));
}
