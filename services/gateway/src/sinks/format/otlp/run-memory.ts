import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { endsLoopOnV2 } from "@tapedeck/shared/events/loop-end";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { isLate } from "./late-events.ts";
import { stepOf } from "./operations.ts";
import { maxEventsRead, withoutOriginal } from "./read-back.ts";
import { isBeginningOf, isSessionStart, runWith } from "./run-scopes.ts";
import { type RunKey, runText } from "./trace-ids.ts";

/** Events that are remembered, at most. Those of the runs that have been silent longest are forgotten first. */
const maxEvents = 50_000;

type Remembered = {
  readonly events: RecordedEvent[];
  last: Offset;
  /** v2's first report that the loop is over. */
  endOnV2?: RecordedEvent;
};

/**
 * The events of runs whose beginning this pass has seen. A run that is not here is read from the log, which gives the same: the memory
 * only saves the reading.
 */
export class RunMemory {
  readonly #runs = new Map<string, Remembered>();
  /** The newest loop of a session, and where it began. */
  readonly #loops = new Map<string, { readonly key: RunKey; readonly offset: Offset }>();
  #count = 0;

  /** An event may come again, when its request was refused. */
  note(recorded: RecordedEvent): void {
    const { event, offset } = recorded;
    const key = isSessionStart(event.session, event) ? sessionKey(event.session) : runWith(event);
    if (key === undefined) return;
    const text = runText(key);
    const isBeginning = isBeginningOf(key, event);
    const known = this.#runs.get(text) ?? (isBeginning ? { events: [], last: -1 as Offset } : undefined);
    if (known === undefined || known.last >= offset) return;
    known.last = offset;
    this.#runs.delete(text);
    if (endsLoopOnV2(event)) known.endOnV2 ??= withoutOriginal(recorded);
    if (stepOf(event) !== undefined) {
      if (known.events.length >= maxEventsRead) {
        this.#count -= known.events.length;
        return;
      }
      known.events.push(withoutOriginal(recorded));
      this.#count++;
    }
    this.#runs.set(text, known);
    if (event.kind === "loop.started" && !event.injected) this.#loops.set(event.session, { key, offset });
    this.#forget();
  }

  /** The events of a run up to one of them; undefined: its beginning was not seen. */
  eventsOf(key: RunKey, until: Offset): readonly RecordedEvent[] | undefined {
    return this.#runs.get(runText(key))?.events.filter(({ offset }) => offset <= until);
  }

  /** The steps of a loop that v2 reports after v1's end of it, and in time; undefined: v2 has not reported the end until then. */
  lateEventsOf(run: RunKey, end: RecordedEvent, lateMs: number): readonly RecordedEvent[] | undefined {
    const { events = [], endOnV2 } = this.#runs.get(runText(run)) ?? {};
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

  #forget(): void {
    for (const [text, { events }] of this.#runs) {
      if (this.#count <= maxEvents && this.#runs.size <= maxEvents) return;
      this.#runs.delete(text);
      this.#count -= events.length;
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
