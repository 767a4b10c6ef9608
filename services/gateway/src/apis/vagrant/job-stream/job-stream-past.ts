import { JobSpan } from "@tapedeck/proto/tapedeck/v1/query";
import type { LogReader, Recorded } from "@tapedeck/shared/log/log";
import type { SourceName } from "@tapedeck/shared/source";
import type { CallContext } from "../../../call-context.ts";
import type { ScopeDeps } from "../../session-scope.ts";
import { read } from "../read.ts";
import { sessionSubjects, toldSubjects } from "./job-stream-course.ts";
import { firstOfJob } from "./job-stream-start.ts";

/** A stretch of the log, both ends included. */
export type Span = { readonly first: number; readonly last: number };

export type JobPast = {
  readonly log: LogReader;
  readonly source: SourceName;
  /** Of the job, in order; see `jobSpans`. */
  readonly spans: readonly Span[];
  /** So far it is past. */
  readonly untilSeq: number;
};

/** Each is a reader of the log of its own, one after the other. */
const mostSpans = 64;

/**
 * Where the events of a job stand, up to a position: from query, which knows all of them by then. While query makes its
 * tables anew it may know none; then everything of the source from the job's first event on. Empty where the log has lost
 * all of it.
 */
export async function jobSpans(
  deps: ScopeDeps,
  { job, source, untilSeq }: { readonly job: string; readonly source: SourceName; readonly untilSeq: number },
  context: CallContext,
): Promise<readonly Span[]> {
  const { log, positions } = deps;
  const { rows } = await read(deps, "job_spans", { ...context, minPosition: positions.written(untilSeq) }, job);
  const spans = rows.filter(({ key }) => key === job).map(({ bytes }) => JobSpan.decode(bytes));
  const known = spans.map(({ first, last }) => ({ first: positions.own(first), last: positions.own(last) }));
  const past = known.filter(({ first }) => first <= untilSeq);
  if (past.length > 0) return fewer(past, mostSpans);
  const place = { log: log(), source, job, session: context.session, untilSeq };
  const first = await firstOfJob(place, context.signal);
  return first === undefined ? [] : [{ first: first.seq, last: untilSeq }];
}

/** The same with what is between some of them, so that they are no more than that many. */
export function fewer(spans: readonly Span[], most: number): readonly Span[] {
  const together = Math.ceil(spans.length / most);
  return spans.flatMap(({ first, last }, index) => {
    if (index % together !== 0) return [];
    return [{ first, last: spans[Math.min(index + together, spans.length) - 1]?.last ?? last }];
  });
}

/** What was recorded of the job, and few events of other jobs, and of the source's sessions from its first event on. */
export async function* pastOfJob(
  { log, source, spans, untilSeq }: JobPast,
  signal: AbortSignal,
): AsyncGenerator<Recorded, void> {
  const [begin] = spans;
  if (begin === undefined) return;
  const sessions = { afterSeq: begin.first - 1, subjects: sessionSubjects(source) };
  yield* inOrder(told(), log.history(sessions, untilSeq, signal));

  async function* told(): AsyncGenerator<Recorded, void> {
    const subjects = toldSubjects(source);
    for (const { first, last } of spans) {
      yield* log.history({ afterSeq: first - 1, subjects }, Math.min(last, untilSeq), signal);
    }
  }
}

/** What two readers of the log give, in the log's order. */
async function* inOrder(...readers: readonly AsyncGenerator<Recorded, void>[]): AsyncGenerator<Recorded, void> {
  try {
    const heads = await Promise.all(readers.map(async (reader) => ({ reader, next: await reader.next() })));
    for (;;) {
      const open = heads.flatMap((head) => (head.next.done === true ? [] : [{ head, recorded: head.next.value }]));
      const [earliest] = open.toSorted((a, b) => a.recorded.seq - b.recorded.seq);
      if (earliest === undefined) return;
      yield earliest.recorded;
      earliest.head.next = await earliest.head.reader.next();
    }
  } finally {
    await Promise.all(readers.map((reader) => reader.return()));
  }
}
