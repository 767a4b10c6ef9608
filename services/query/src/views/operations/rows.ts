import type { CommandDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { OperationRow, OutcomeText } from "../../db/schema.ts";
import { longText, text } from "../../db/text.ts";
import { millisecondsBetween, storedTimestamp } from "../../db/timestamp.ts";
import { cancelled, noCause } from "../causes/cause-columns.ts";
import { sourceColumns } from "../view.ts";
import { endsSession, type Pairing, pairingKey, stepOf } from "./pairing.ts";

/**
 * Pairs starts and ends. `known` holds the newest operation of every pairing in the batch, and the operations that run in
 * the sessions that end in it. Returns the new and the changed rows. `onEnd`: see isFirstEnd.
 */
export function rowsAfter(
  known: readonly OperationRow[],
  batch: readonly RecordedEvent[],
  onEnd: (row: OperationRow, recorded: RecordedEvent) => void = () => {},
): OperationRow[] {
  const newest = new Map<string, OperationRow>();
  const running = new Map<string, OperationRow>();
  const changed = new Map<string, OperationRow>();
  const earlier = new Map(known.map((row) => [row.id, row]));
  for (const row of known) {
    const before = newest.get(pairingKey(row));
    if (before === undefined || before.start_position < row.start_position) newest.set(pairingKey(row), row);
    if (row.outcome === null) running.set(row.id, row);
  }
  const put = (row: OperationRow, recorded: RecordedEvent) => {
    const pairing = pairingKey(row);
    if ((newest.get(pairing)?.start_position ?? 0) <= row.start_position) newest.set(pairing, row);
    if (row.outcome === null) running.set(row.id, row);
    else running.delete(row.id);
    if (isFirstEnd(changed.get(row.id) ?? earlier.get(row.id), row)) onEnd(row, recorded);
    changed.set(row.id, row);
  };

  for (const recorded of batch) {
    const step = stepOf(recorded);
    if (step !== undefined) {
      const before = newest.get(pairingKey(step.pairing));
      switch (step.does) {
        case "start":
          if (before?.outcome === null) put(abandoned(before, recorded), recorded);
          put(begun(step.pairing, recorded), recorded);
          break;
        case "once":
          put(cached(step.pairing, recorded), recorded);
          break;
        case "end": {
          // The last end counts. One may come late, after the session was considered over. Skaffold repeats one: it
          // reports a loop as failed each time that its sync is retried.
          const row = before === undefined || before.cache_hit ? unbegun(step.pairing, recorded) : before;
          put(ended(row, recorded, step.outcome), recorded);
          break;
        }
        case "lost":
          if (before === undefined) put(abandoned(unbegun(step.pairing, recorded), recorded), recorded);
          else if (before.outcome === null) put(abandoned(before, recorded), recorded);
      }
    } else if (endsSession(recorded.event)) {
      for (const row of running.values())
        if (row.session === recorded.event.session) put(abandoned(row, recorded), recorded);
    }
  }
  return [...changed.values()];
}

/** Whether an outcome is known for the first time; again where it was thought that it would never be known. */
function isFirstEnd(before: OperationRow | undefined, { outcome }: OperationRow): boolean {
  if (outcome === null) return false;
  const known = before?.outcome ?? null;
  return known === null || (known === "unknown" && outcome !== "unknown");
}

function unbegun(pairing: Pairing, { event, offset }: RecordedEvent): OperationRow {
  return {
    ...sourceColumns(event.source),
    ...pairing,
    id: event.id,
    started_at: null,
    started_ns: 0,
    ended_at: null,
    ended_ns: 0,
    duration_ms: null,
    outcome: null,
    error_code: "",
    error: "",
    cache_hit: false,
    platform: "",
    iteration: null,
    exit_code: null,
    ...noCause,
    start_position: offset,
    end_position: null,
  };
}

function begun(pairing: Pairing, recorded: RecordedEvent): OperationRow {
  const started = storedTimestamp(recorded.event.occurred_at);
  return {
    ...unbegun(pairing, recorded),
    ...detailColumns(recorded),
    started_at: started.at,
    started_ns: started.ns,
  };
}

function ended(row: OperationRow, recorded: RecordedEvent, outcome: OutcomeText): OperationRow {
  const { event, offset } = recorded;
  const end = storedTimestamp(event.occurred_at);
  return {
    ...row,
    ...detailColumns(recorded),
    ended_at: end.at,
    ended_ns: end.ns,
    duration_ms: millisecondsBetween({ at: row.started_at, ns: row.started_ns }, end, longestMs(row)),
    outcome,
    // Why it failed is concluded later, from its output (causes.ts).
    ...noCause,
    reason: outcome === "canceled" ? cancelled : "",
    error_code: text(event.error?.code ?? ""),
    error: longText(event.error?.message ?? ""),
    end_position: offset,
  };
}

const yearMs = 366 * 24 * 3_600_000;

/** Pods and their apps may run for years; nobody waits so long for anything else. */
function longestMs({ kind }: Pick<OperationRow, "kind">): number {
  return kind === "pod" || kind === "app" ? 20 * yearMs : yearMs;
}

/** A cache hit has no duration, because nothing was built. */
function cached(pairing: Pairing, recorded: RecordedEvent): OperationRow {
  const { at, ns } = storedTimestamp(recorded.event.occurred_at);
  return {
    ...begun(pairing, recorded),
    ended_at: at,
    ended_ns: ns,
    outcome: "succeeded",
    cache_hit: true,
    end_position: recorded.offset,
  };
}

/** No event will report how or when the operation ended. */
function abandoned(row: OperationRow, { offset }: RecordedEvent): OperationRow {
  return { ...row, outcome: "unknown", end_position: offset };
}

function detailColumns({ event }: RecordedEvent): Partial<OperationRow> {
  switch (event.detail?.$case) {
    case "build": {
      const platform = text(event.detail.value.target_platforms || event.detail.value.host_platform);
      return platform === "" ? {} : { platform };
    }
    case "loop":
      return { iteration: event.detail.value.iteration };
    case "app":
      return { exit_code: event.detail.value.exit_code ?? null };
    case "command":
      return event.kind === "command.finished" ? { exit_code: exitCodeOf(event.detail.value) } : {};
    default:
      return {};
  }
}

/** Vagrant answers 0 also for a command that failed with an error. */
export function exitCodeOf({ succeeded, exit_code }: CommandDetail): number | null {
  return succeeded || exit_code !== 0 ? exit_code : null;
}
