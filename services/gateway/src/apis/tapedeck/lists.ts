import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import type { Cause, HistoryItem, Hit, Operation, Session, Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { timeToJson } from "@tapedeck/shared/events/time-text";
import { timesJson } from "../state-head.ts";
import type { AnswerOf } from "./answers.ts";
import type { ListContext, ListParameters, Lists } from "./list-request.ts";
import { filterOf, type ParametersOf } from "./parameters.ts";
import { between, labelsOf } from "./read-parameters.ts";

/** A page of a list in the HTTP API: newest first. */
export type Page<Item> = { readonly items: readonly Item[]; readonly nextPage?: string; readonly position: string };

/** The parameters of all lists. */
type Parameters = Omit<
  ParametersOf<"sources"> & ParametersOf<"sessions"> & ParametersOf<"operations"> & ParametersOf<"search">,
  "kind"
> & { readonly kind?: readonly string[] | undefined };

export type ListsJson = {
  readonly [Name in keyof Lists]: (context: ListContext, parameters: Parameters) => Promise<Page<object>>;
};

/** The lists as JSON. Everything throws TapedeckError. */
export function listsJson(lists: Lists): ListsJson {
  return {
    sources: async (context, parameters) =>
      pageJson(await lists.sources(context, listParameters(parameters)), sourceJson),
    sessions: async (context, parameters) =>
      pageJson(await lists.sessions(context, listParameters(parameters)), sessionJson),
    operations: async (context, parameters) =>
      pageJson(await lists.operations(context, listParameters(parameters)), operationJson),
    search: async (context, parameters) => {
      const found = await lists.search(context, listParameters(parameters));
      const { total, total_is_minimum: totalIsMinimum } = found;
      return { ...pageJson(found, historyItemJson), ...(total !== undefined && { total, totalIsMinimum }) };
    },
  };
}

function listParameters(parameters: Parameters): ListParameters {
  const { kind: kinds, label, runner, loop, per_source: perSource, limit, page, at, ...more } = parameters;
  const { q: text, reason: reasons, artifact: artifacts, ...others } = more;
  return {
    filter: filterOf(others),
    ...between(others),
    kinds,
    text,
    reasons,
    labels: label && labelsOf(label),
    artifacts,
    runner,
    loop,
    perSource,
    limit,
    page,
    at: at?.replace(" ", "+"),
  };
}

type ListMessage<Message> = {
  readonly items: readonly Message[];
  readonly next_page: string;
  readonly position: string;
};

function pageJson<Message>({ items, next_page, position }: ListMessage<Message>, json: (item: Message) => object) {
  return { items: items.map(json), ...(next_page !== "" && { nextPage: next_page }), position };
}

function sourceJson(source: Source): AnswerOf<"Source"> {
  return {
    source: source.source,
    workspace: source.workspace,
    developer: source.developer,
    project: source.project,
    upstream: source.upstream,
    status: source.status as AnswerOf<"Source">["status"],
    currentSession: textJson(source.current_session),
    lastEventAt: timeJson(source.last_event_at),
    lastPosition: source.last_position,
    firstPosition: source.first_position,
    developerName: source.developer_name,
    projectName: source.project_name,
    address: source.address,
    gaps: source.gaps,
    notHeardSince: timeJson(source.not_heard_since),
    heardAt: timesJson(source.heard_at),
    clockOffsetMs: numberJson(source.clock_offset_ms),
    lagMs: numberJson(source.lag_ms),
  };
}

function sessionJson(session: Session): AnswerOf<"Session"> {
  return {
    session: session.session,
    source: session.source,
    labels: session.labels,
    startedAt: timeJson(session.started_at),
    endedAt: timeJson(session.ended_at),
    endReason: textJson(session.end_reason),
    startPosition: session.start_position,
    endPosition: session.end_position,
    upstreamVersion: session.upstream_version,
    gaps: session.gaps,
    exitCode: session.exit_code ?? null,
    commandLine: textJson(session.command_line),
    cause: causeJson(session.cause),
  };
}

function operationJson(operation: Operation): AnswerOf<"Operation"> {
  return {
    id: operation.id,
    kind: operation.kind,
    subject: operation.subject,
    instance: operation.instance,
    source: operation.source,
    session: operation.session,
    runner: operation.runner,
    loop: operation.loop,
    startedAt: timeJson(operation.started_at),
    endedAt: timeJson(operation.ended_at),
    durationMs: numberJson(operation.duration_ms),
    outcome: textJson(operation.outcome) as AnswerOf<"Operation">["outcome"],
    errorCode: operation.error_code,
    error: operation.error,
    cause: causeJson(operation.cause),
    exitCode: operation.exit_code ?? null,
    cacheHit: operation.cache_hit,
    platform: operation.platform,
    startPosition: operation.start_position,
    endPosition: textJson(operation.end_position),
    ...(operation.kind === "loop" && { labels: operation.labels }),
  };
}

function historyItemJson(item: HistoryItem): AnswerOf<"HistoryItem"> {
  const { kind, source, session, runner, loop, subject, instance, artifacts, labels, hit } = item;
  return {
    kind: kind as AnswerOf<"HistoryItem">["kind"],
    source,
    session,
    runner,
    loop,
    subject,
    instance,
    startedAt: timeJson(item.started_at),
    endedAt: timeJson(item.ended_at),
    durationMs: numberJson(item.duration_ms),
    outcome: textJson(item.outcome) as AnswerOf<"HistoryItem">["outcome"],
    exitCode: item.exit_code ?? null,
    cause: causeJson(item.cause),
    artifacts,
    labels,
    startPosition: item.start_position,
    endPosition: textJson(item.end_position),
    ...(hit !== undefined && { hit: hitJson(hit) }),
  };
}

function hitJson({ place, text, step, subject, position }: Hit): AnswerOf<"Hit"> {
  return { place: place as AnswerOf<"Hit">["place"], text, step, subject, position: textJson(position) };
}

export function causeJson(cause: Cause | undefined): AnswerOf<"Cause"> | null {
  if (cause === undefined) return null;
  const { text, reason, group, file, line = null, advice, phase, subject, tries } = cause;
  return { text, reason, group, file: textJson(file), line, advice: textJson(advice), phase, subject, tries };
}

/** A value that is not known yet, such as an end or an outcome, is null and never an empty text. */
export function textJson(text: string): string | null {
  return text === "" ? null : text;
}

/** A number of 64 bits in a contract, whose values fit in 2^53: times in ms, counts. */
export function numberJson(number: bigint | undefined): number | null {
  return number === undefined ? null : Number(number);
}

export function timeJson(time: Timestamp | undefined): string | null {
  return time === undefined ? null : timeToJson(time);
}
