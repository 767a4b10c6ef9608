import type { ResourceSpans } from "@tapedeck/proto/opentelemetry/proto/trace/v1/trace";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { endsLoopOnV2 } from "@tapedeck/shared/events/loop-end";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart } from "@tapedeck/shared/log/offset";
import type { FormatReader, FormattedSink } from "../format.ts";
import { isLate, mayHaveLateEvents, readLateEvents } from "./late-events.ts";
import { type Operation, operationOf, operationsOf, type Result, stepOf, timeOf } from "./operations.ts";
import { type ReadBack, readBack } from "./read-back.ts";
import { RunMemory } from "./run-memory.ts";
import {
  belongsTo,
  endsSession,
  instanceOf,
  lastLoopScope,
  runOf,
  runWith,
  type Scope,
  scopeOf,
  sessionScope,
} from "./run-scopes.ts";
import { type SessionFacts, SessionReader } from "./session-facts.ts";
import { type Run, resourceSpansOf } from "./spans.ts";
import { type RunKey, runText } from "./trace-ids.ts";

type Ending = NonNullable<Run["missing"]["end"]>;

/** Reads the runs that an event ends, or that begin with it. */
export class TraceReader {
  readonly #sink: FormattedSink;
  readonly #reader: FormatReader;
  readonly #sessions: SessionReader;
  readonly #memory: RunMemory;
  /** The pass gives all events of the runs, and not only some by their kinds. */
  readonly #followsAll: boolean;
  readonly #lateMs: number;

  constructor(sink: FormattedSink, reader: FormatReader, lateMs: number) {
    const { kinds, subjects, outcomes } = sink.filter;
    this.#sink = sink;
    this.#reader = reader;
    this.#lateMs = lateMs;
    this.#memory = new RunMemory(lateMs);
    this.#followsAll = kinds === undefined && subjects === undefined && outcomes === undefined;
    this.#sessions = new SessionReader(reader, sink.workspace, this.#followsAll);
  }

  /** To be called with each event of the pass, before `at` is. */
  note(recorded: RecordedEvent): void {
    if (!this.#followsAll) return;
    this.#memory.note(recorded);
    this.#sessions.note(recorded);
  }

  isOfInterest(event: Event): boolean {
    if (endsSession(event) || endsLoopOnV2(event)) return true;
    return stepOf(event) !== undefined && (this.#sink.live || runOf(event) !== undefined);
  }

  async at(recorded: RecordedEvent, signal: AbortSignal): Promise<readonly ResourceSpans[]> {
    const { event } = recorded;
    const runs = endsSession(event) ? await this.#openRuns(recorded, signal) : await this.#runsAt(recorded, signal);
    return signal.aborted ? [] : runs.map((run) => resourceSpansOf(run, this.#sink));
  }

  async #runsAt(recorded: RecordedEvent, signal: AbortSignal): Promise<readonly Run[]> {
    const { event } = recorded;
    if (endsLoopOnV2(event)) return this.#completedLoop(recorded, signal);
    const step = stepOf(event);
    if (step === undefined) return [];
    const own = runOf(event);
    if (own === undefined) return this.#sink.live && step.does === "start" ? this.#liveTask(recorded, signal) : [];
    if (step.does !== "start") return this.#endedRun(own, recorded, signal);
    const unended = event.kind === "loop.started" ? await this.#unendedLoop(own, recorded, signal) : [];
    return this.#sink.live ? [...unended, await this.#liveRun(own, recorded, signal)] : unended;
  }

  async #endedRun(key: RunKey, recorded: RecordedEvent, signal: AbortSignal): Promise<readonly Run[]> {
    const { events, left } = await this.#eventsOf(key, recorded, signal);
    const isRead = events.some(({ offset }) => offset === recorded.offset);
    // Its session may have been erased after this event was read.
    if (!isRead && (await Array.fromAsync(this.#reader.read([recorded.offset], signal))).length === 0) return [];
    const late = await this.#lateEventsOf(key, recorded, signal);
    const run = await this.#run(key, [...events, ...(isRead ? [] : [recorded]), ...late], recorded, signal);
    return [left === 0 ? run : { ...run, missing: { ...run.missing, events: left } }];
  }

  /** A loop that was sent without what v2 reports of it, because that took too long. */
  async #completedLoop(recorded: RecordedEvent, signal: AbortSignal): Promise<readonly Run[]> {
    const key = runWith(recorded.event);
    if (key?.kind !== "loop") return [];
    const { events } = await this.#eventsOf(key, recorded, signal);
    const end = lastEnd(key, events);
    if (end === undefined || recorded.recordedAt.getTime() <= end.recordedAt.getTime() + this.#lateMs) return [];
    return [await this.#run(key, events, end, signal)];
  }

  /** The loop before this one, if its end was not recorded, or if a step that began after it has none. */
  async #unendedLoop(key: RunKey, recorded: RecordedEvent, signal: AbortSignal): Promise<readonly Run[]> {
    const before = { ...key, loop: key.loop - 1 };
    if (before.loop < 1) return [];
    const { events } = await this.#eventsOf(before, recorded, signal);
    if (events.length === 0 || isClosed(before, events)) return [];
    const late = await this.#lateEventsOf(before, recorded, signal);
    return [await this.#run(before, [...events, ...late], recorded, signal, "not_observed")];
  }

  /** What a session leaves unended, or all that it did, if it had no loops. */
  async #openRuns(recorded: RecordedEvent, signal: AbortSignal): Promise<readonly Run[]> {
    const { session, source, kind } = recorded.event;
    const ending: Ending = kind === "session.lost" ? "session_lost" : "session_ended";
    const [, , , upstream] = source.split("/");
    if (upstream === "skaffold") return this.#openSkaffold(recorded, ending, signal);
    const of = upstream === "vagrant" ? "command" : "pod";
    const ended = new Set<string>();
    const needed = (some: readonly RecordedEvent[]) => {
      openRuns(some, ended);
      return some.filter(({ event }) => !ended.has(instanceOf(event)));
    };
    const { events } = await this.#read({ ...sessionScope(of, session), needed }, recorded, signal);
    const open = [...openRuns(events, ended).values()];
    return Promise.all(open.map(({ key, events: own }) => this.#run(key, own, recorded, signal, ending)));
  }

  async #openSkaffold(recorded: RecordedEvent, ending: Ending, signal: AbortSignal): Promise<readonly Run[]> {
    const { session } = recorded.event;
    const last = this.#memory.lastRunOf(session, recorded.offset);
    const known = last && this.#memory.eventsOf(last, recorded.offset);
    const events = known ?? (await this.#read(lastLoopScope(session, this.#lateMs), recorded, signal)).events;
    const hasLoop = ({ event }: RecordedEvent) => (event.operation?.loop ?? 0) > 0 && stepOf(event) !== undefined;
    // What v2 reports of the loop before may come last.
    const loop =
      events.findLast((one) => one.event.kind === "loop.started" && hasLoop(one)) ?? events.findLast(hasLoop);
    const { runner = 0, loop: number = 0 } = loop?.event.operation ?? {};
    const isLoop = loop !== undefined;
    const key: RunKey = { kind: isLoop ? "loop" : "session", session, runner, loop: number, instance: "" };
    const own = events.filter(({ event }) => belongsTo(key, event));
    if (isLoop ? isClosed(key, own) : operationsOf(own).length === 0) return [];
    return [await this.#run(key, own, recorded, signal, ending)];
  }

  async #liveRun(key: RunKey, recorded: RecordedEvent, signal: AbortSignal): Promise<Run> {
    const root = { ...operationOf(recorded), startedAt: timeOf(recorded) };
    const session = await this.#sessions.at(recorded, root.startedAt, signal);
    return { key, source: recorded.event.source, session, root, tasks: [], missing: { beginning: false } };
  }

  /** A step that has begun. The first one of a command without loops comes with the root, which has no event of its own. */
  async #liveTask(recorded: RecordedEvent, signal: AbortSignal): Promise<readonly Run[]> {
    const { source, detail } = recorded.event;
    const key = runWith(recorded.event);
    // A job that is no command's is in no trace.
    if (key === undefined || (detail?.$case === "job" && detail.value.operation !== "command")) return [];
    const events =
      key.kind === "loop" || key.kind === "session" ? await this.#eventsOf(key, recorded, signal) : nothing;
    // It was sent with its end.
    const end = lastEnd(key, events.events);
    if (end !== undefined && isLate(key, end.event, recorded.event)) return [];
    const begun = { ...operationOf(recorded), startedAt: timeOf(recorded) };
    const session = await this.#sessions.at(recorded, undefined, signal);
    const isFirst = key.kind === "session" && events.events.length <= 1;
    const root = isFirst ? { ...begun, startedAt: session.startedAt } : undefined;
    return [{ key, source, session, root, tasks: [begun], missing: { beginning: false } }];
  }

  async #run(
    key: RunKey,
    events: readonly RecordedEvent[],
    last: RecordedEvent,
    signal: AbortSignal,
    ending?: Ending,
  ): Promise<Run> {
    const operations = operationsOf(events);
    const isRoot = ({ kind }: Operation) => kind === key.kind;
    const own = operations.findLast(isRoot);
    const session = await this.#sessions.at(last, own?.startedAt, signal);
    const root = key.kind === "session" ? rootOfSession(operations, last, session) : rootOf(own, operations, last);
    const tasks = operations.filter((one) => !isRoot(one)).map((one) => endedWith(one, root));
    const isEndMissing = ending !== undefined && own?.result === undefined;
    const missing = { beginning: root.startedAt === undefined, ...(isEndMissing && { end: ending }) };
    const startedAt = root.startedAt ?? earliestOf(operations);
    const isWhole = key.kind === "session" && last.event.kind === "session.ended";
    return {
      key,
      source: last.event.source,
      session,
      root: { ...root, startedAt },
      tasks,
      missing: isWhole ? { beginning: missing.beginning } : missing,
    };
  }

  async #eventsOf(key: RunKey, recorded: RecordedEvent, signal: AbortSignal): Promise<Omit<ReadBack, "isWhole">> {
    const known = this.#memory.eventsOf(key, recorded.offset);
    return known === undefined ? this.#read(scopeOf(key, this.#lateMs), recorded, signal) : { events: known, left: 0 };
  }

  async #lateEventsOf(run: RunKey, end: RecordedEvent, signal: AbortSignal): Promise<readonly RecordedEvent[]> {
    if (!mayHaveLateEvents(run, end.event)) return [];
    const known = this.#memory.lateEventsOf(run, end, this.#lateMs);
    if (known !== undefined) return known;
    const { workspace } = this.#sink;
    return readLateEvents(this.#reader, { workspace, run, end, lateMs: this.#lateMs }, signal);
  }

  #read(scope: Scope, { event, offset }: RecordedEvent, signal: AbortSignal): Promise<ReadBack> {
    const { workspace } = this.#sink;
    return readBack(this.#reader, { workspace, source: event.source, until: offset, ...scope }, signal);
  }
}

const nothing: Pick<ReadBack, "events"> = { events: [] };

type OpenRun = { readonly key: RunKey; readonly events: RecordedEvent[] };

/** The runs of commands or pods that have no end, by name. `ended` has the names of those that had one before, and gets more. */
function openRuns(events: readonly RecordedEvent[], ended: Set<string>): ReadonlyMap<string, OpenRun> {
  const runs = new Map<string, OpenRun>();
  for (const { event } of events) {
    const key = runOf(event);
    if (key === undefined) continue;
    runs.set(key.instance, runs.get(key.instance) ?? { key, events: [] });
    if (!event.injected && stepOf(event)?.does === "end") ended.add(key.instance);
  }
  for (const instance of ended) runs.delete(instance);
  for (const recorded of events) runs.get(instanceOf(recorded.event))?.events.push(recorded);
  return runs;
}

function lastEnd(key: RunKey, events: readonly RecordedEvent[]): RecordedEvent | undefined {
  return events.findLast(({ event }) => {
    const run = event.injected ? undefined : runOf(event);
    return run !== undefined && runText(run) === runText(key) && stepOf(event)?.does === "end";
  });
}

/** Whether a run has an end, and what has begun after it has one, too. */
function isClosed(key: RunKey, events: readonly RecordedEvent[]): boolean {
  const end = lastEnd(key, events);
  if (end === undefined) return false;
  const later = events.filter(({ event, offset }) => offset > end.offset && event.channel === end.event.channel);
  return operationsOf(later).every(({ result }) => result !== undefined);
}

/** An operation that has not ended ends with its run: with the session's end it was given up, else nobody has seen how. */
function rootOf(own: Operation | undefined, operations: readonly Operation[], last: RecordedEvent): Operation {
  const root = own ?? { ...(operations[0] ?? operationOf(last)), subject: "", startedAt: undefined };
  if (root.result !== undefined && own !== undefined) return root;
  return { ...root, result: resultOfEnd(last.event), error: undefined, exitCode: undefined, endedAt: timeOf(last) };
}

function resultOfEnd({ kind }: Event): Result {
  return kind === "session.ended" ? "cancellation" : "unknown";
}

function endedWith(task: Operation, root: Operation): Operation {
  if (task.result !== undefined) return task;
  const result = root.result === "cancellation" ? "cancellation" : "unknown";
  return { ...task, result, endedAt: root.endedAt };
}

/** A command without loops, such as `skaffold build`: as its process ended. */
function rootOfSession(operations: readonly Operation[], last: RecordedEvent, session: SessionFacts): Operation {
  const { detail, kind } = last.event;
  const ended = detail?.$case === "session_detail" ? detail.value : undefined;
  const failed = operations.find(({ result }) => result === "failure");
  const code = ended?.exit_code;
  const result: Result =
    kind === "session.lost" ? "unknown" : (code ?? (failed === undefined ? 0 : 1)) === 0 ? "success" : "failure";
  return {
    ...operationOf(last),
    offset: operations[0]?.offset ?? logStart,
    startedAt: session.startedAt,
    endedAt: timeOf(last),
    result,
    error: result === "failure" ? failed?.error : undefined,
    exitCode: code,
  };
}

function earliestOf(operations: readonly Operation[]): bigint | undefined {
  const times = operations.flatMap(({ startedAt, endedAt }) => startedAt ?? endedAt ?? []);
  return times.reduce<bigint | undefined>((least, at) => (least === undefined || at < least ? at : least), undefined);
}
