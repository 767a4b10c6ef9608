import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { endsLoopOnV2 } from "@tapedeck/shared/events/loop-end";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { isLate } from "./late-events.ts";
import { stepOf } from "./operations.ts";
import { maxEventsRead, withoutOriginal } from "./read-back.ts";
import { isAhead, isBeginningOf, isSessionStart, runWith } from "./run-scopes.ts";
import { type RunKey, runText } from "./trace-ids.ts";

/** Events that are remembered, at most. Those of the runs that have been silent longest are forgotten first. */
const maxEvents = 50_000;

type Remembered = {
  readonly first: Offset;
  events: RecordedEvent[];
  last: Offset;
  /** When the last one was recorded. */
  lastAt: number;
  /** Whether all that belongs to the run is here. */
  isWhole: boolean;
  /** It has more events than are remembered of one run, and none of them is here. */
  isTooLarge: boolean;
  /** v2's first report that the loop is over. */
  endOnV2?: RecordedEvent;
};

/**
 * The events of runs whose beginning this pass has seen. A run that is not here is read from the log, which gives the same: the memory
 * only saves the reading.
 */
export class RunMemory {
  readonly #runs = new Map<string, Remembered>();
  /** The newest loop of a session that has started, or else its newest one, and where it began. */
  readonly #loops = new Map<string, { readonly key: RunKey; readonly offset: Offset; readonly isStarted: boolean }>();
  /** How long before its start the steps of a loop may be recorded. */
  readonly #aheadMs: number;
  /** What is recorded later is remembered. */
  #since: { readonly offset: Offset; readonly at: number } | undefined;
  #count = 0;

  constructor(aheadMs: number) {
    this.#aheadMs = aheadMs;
  }

  /** An event may come again, when its request was refused. */
  note(recorded: RecordedEvent): void {
    const { event, offset, recordedAt } = recorded;
    this.#since ??= { offset: (offset - 1) as Offset, at: recordedAt.getTime() };
    const key = isSessionStart(event.session, event) ? sessionKey(event.session) : runWith(event);
    if (key === undefined) return;
    const text = runText(key);
    const known = this.#runs.get(text) ?? this.#begun(key, recorded);
    if (known === undefined || known.last >= offset) return;
    known.last = offset;
    known.lastAt = recordedAt.getTime();
    this.#runs.delete(text);
    this.#runs.set(text, known);
    if (key.kind === "loop") this.#noteLoop(key, known, recorded);
    if (endsLoopOnV2(event)) known.endOnV2 ??= withoutOriginal(recorded);
    if (stepOf(event) !== undefined) this.#add(known, recorded);
    this.#forget();
  }

  /** The events of a run up to one of them; undefined: they are not here, or not all of them. */
  eventsOf(key: RunKey, until: Offset): readonly RecordedEvent[] | undefined {
    return this.#wholeRun(key)?.events.filter(({ offset }) => offset <= until);
  }

  /** The steps of a loop that v2 reports after v1's end of it, and in time; undefined: v2 has not reported the end until then. */
  lateEventsOf(run: RunKey, end: RecordedEvent, lateMs: number): readonly RecordedEvent[] | undefined {
    const { events = [], endOnV2 } = this.#wholeRun(run) ?? {};
    if (endOnV2 === undefined || endOnV2.recordedAt.getTime() > end.recordedAt.getTime() + lateMs) return undefined;
    const isBetween = ({ offset }: RecordedEvent) => offset > end.offset && offset < endOnV2.offset;
    return events.filter((one) => isBetween(one) && isLate(run, end.event, one.event));
  }

  /** The last loop of a session, or the session itself if it has none; undefined: not known. */
  lastRunOf(session: string, until: Offset): RunKey | undefined {
    const loop = this.#loops.get(session);
    if (loop !== undefined) return loop.offset < until ? loop.key : undefined;
    return this.#runs.has(runText(sessionKey(session))) ? sessionKey(session) : undefined;
  }

  #wholeRun(key: RunKey): Remembered | undefined {
    const run = this.#runs.get(runText(key));
    return run?.isWhole && !run.isTooLarge ? run : undefined;
  }

  /** A run that this event begins. A loop begins with its first event on any channel: v2 may be recorded before v1's start of it. */
  #begun(key: RunKey, { event, offset }: RecordedEvent): Remembered | undefined {
    const run = { first: offset, events: [], last: -1 as Offset, lastAt: 0, isTooLarge: false };
    const isBeginning = isBeginningOf(key, event);
    if (key.kind !== "loop") return isBeginning ? { ...run, isWhole: true } : undefined;
    if (!isBeginning && stepOf(event) === undefined && !endsLoopOnV2(event)) return undefined;
    const session = this.#runs.get(runText(sessionKey(event.session)));
    return { ...run, isWhole: session !== undefined && session.first > (this.#since?.offset ?? offset) };
  }

  #noteLoop(key: RunKey, known: Remembered, recorded: RecordedEvent): void {
    const { event, offset, recordedAt } = recorded;
    const isStarted = isBeginningOf(key, event);
    if (isStarted) {
      const ahead = known.events.filter((one) => isAhead(one, recorded, this.#aheadMs));
      this.#count -= known.events.length - ahead.length;
      known.events = ahead;
      known.isWhole ||= (this.#since?.at ?? Number.POSITIVE_INFINITY) < recordedAt.getTime() - this.#aheadMs;
    }
    const isNewest = stepOf(event) !== undefined && this.#loops.get(event.session)?.isStarted !== true;
    if (isStarted || isNewest) this.#loops.set(event.session, { key, offset, isStarted });
  }

  #add(known: Remembered, recorded: RecordedEvent): void {
    if (known.isTooLarge) return;
    if (known.events.length < maxEventsRead) {
      known.events.push(withoutOriginal(recorded));
      this.#count++;
      return;
    }
    this.#count -= known.events.length;
    known.events = [];
    known.isTooLarge = true;
  }

  #forget(): void {
    for (const [text, { events, last, lastAt }] of this.#runs) {
      if (this.#count <= maxEvents && this.#runs.size <= maxEvents) return;
      this.#runs.delete(text);
      this.#count -= events.length;
      if (last > (this.#since?.offset ?? -1)) this.#since = { offset: last, at: lastAt };
    }
    for (const session of this.#loops.keys()) {
      if (this.#loops.size <= maxEvents) return;
      this.#loops.delete(session);
    }
  }
}

export function sessionKey(session: Event["session"]): RunKey {
  return { kind: "session", session, runner: 0, loop: 0, instance: "" };
}
