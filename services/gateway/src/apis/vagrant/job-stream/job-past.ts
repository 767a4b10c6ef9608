import { JobSpan } from "@tapedeck/proto/tapedeck/v1/query";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { earlierOf, justBefore, type Offset } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import type { CallContext } from "../../../call-context.ts";
import { readCollection } from "../../read-collection.ts";
import type { ScopeDeps } from "../../session-scope.ts";
import { firstOfJob } from "./first-event.ts";
import { jobEventSubjects, sessionSubjects } from "./job-progress.ts";

/** A stretch of the log, both ends included. */
export type LogSpan = { readonly first: Offset; readonly last: Offset };

export type JobPast = {
  readonly log: LogReader;
  readonly source: SourceName;
  /** The job's spans, in order; see `jobSpans`. */
  readonly spans: readonly LogSpan[];
  /** Offset up to which events are past. */
  readonly untilOffset: Offset;
};

/** Each span needs a reader of the log, one after the other. */
const maxSpans = 64;

/**
 * Where the log has events of a job, up to a position. Query knows all of them by then. While query rebuilds its tables it
 * may know none: then the span is the source's whole log from the job's first event on. Empty when the log has lost all
 * of the job.
 */
export async function jobSpans(
  deps: ScopeDeps,
  { job, source, untilOffset }: { readonly job: string; readonly source: SourceName; readonly untilOffset: Offset },
  context: CallContext,
): Promise<readonly LogSpan[]> {
  const { log, positions } = deps;
  const { rows } = await readCollection(
    deps,
    "vagrant",
    "job_spans",
    { ...context, minPosition: positions.written(untilOffset) },
    job,
  );
  const spans = rows.filter(({ key }) => key === job).map(({ bytes }) => JobSpan.decode(bytes));
  const known = spans.map(({ first, last }) => ({ first: positions.own(first), last: positions.own(last) }));
  const past = known.filter(({ first }) => first <= untilOffset);
  if (past.length > 0) return fewer(past, maxSpans);
  const search = { log: log(), source, job, session: context.session, untilOffset };
  const first = await firstOfJob(search, context.signal);
  return first === undefined ? [] : [{ first: first.offset, last: untilOffset }];
}

/** Joins neighbouring spans, with what is between them, until there are at most `max`. */
export function fewer(spans: readonly LogSpan[], max: number): readonly LogSpan[] {
  const together = Math.ceil(spans.length / max);
  return spans.flatMap(({ first, last }, index) => {
    if (index % together !== 0) return [];
    return [{ first, last: spans[Math.min(index + together, spans.length) - 1]?.last ?? last }];
  });
}

/** The job's events with a few of other jobs between them, and the source's sessions from the job's first event on. */
export async function* pastOfJob(
  { log, source, spans, untilOffset }: JobPast,
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent, void> {
  const [begin] = spans;
  if (begin === undefined) return;
  const sessions = { afterOffset: justBefore(begin.first), subjects: sessionSubjects(source) };
  yield* inOrder(jobEvents(), log.history(sessions, untilOffset, signal));

  async function* jobEvents(): AsyncGenerator<RecordedEvent, void> {
    const subjects = jobEventSubjects(source);
    for (const { first, last } of spans) {
      yield* log.history({ afterOffset: justBefore(first), subjects }, earlierOf(last, untilOffset), signal);
    }
  }
}

/** The events of several readers of the log, in the log's order. */
async function* inOrder(
  ...readers: readonly AsyncGenerator<RecordedEvent, void>[]
): AsyncGenerator<RecordedEvent, void> {
  try {
    const heads = await Promise.all(readers.map(async (reader) => ({ reader, next: await reader.next() })));
    for (;;) {
      const open = heads.flatMap((head) => (head.next.done === true ? [] : [{ head, recorded: head.next.value }]));
      const [earliest] = open.toSorted((a, b) => a.recorded.offset - b.recorded.offset);
      if (earliest === undefined) return;
      yield earliest.recorded;
      earliest.head.next = await earliest.head.reader.next();
    }
  } finally {
    await Promise.all(readers.map((reader) => reader.return()));
  }
}
