import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import type { Operation, Session, Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { timeToJson } from "@tapedeck/shared/events/time-text";
import type { QueryClient } from "../../query-client.ts";
import { timesJson } from "../state-head.ts";
import type { AnswerOf } from "./answers.ts";
import type { List, Page } from "./list.ts";
import { type Lister, type ListParameters, listMessages } from "./list-request.ts";
import { filterOf, type ParametersOf } from "./parameters.ts";
import { between, labelsOf } from "./read-parameters.ts";
import { type StatsApi, statsApi } from "./stats.ts";

export type Lists = {
  readonly sources: List<"sources", AnswerOf<"Source">>;
  readonly sessions: List<"sessions", AnswerOf<"Session">>;
  readonly operations: List<"operations", AnswerOf<"Operation">>;
  readonly stats: StatsApi;
};

/** Lists of what query knows, as JSON. Everything throws TapedeckError. */
export function listsApi(query: Lister & Pick<QueryClient, "buildStats" | "stats">): Lists {
  const lists = listMessages(query);
  return {
    async sources(context, parameters) {
      const { items, next_page, position } = await lists.sources(context, {
        filter: filterOf(parameters),
        ...paging(parameters),
      });
      return page(items.map(sourceJson), next_page, position);
    },
    async sessions(context, parameters) {
      const { items, next_page, position } = await lists.sessions(context, {
        filter: filterOf(parameters),
        labels: labelsOf(parameters.label ?? []),
        ...between(parameters),
        ...paging(parameters),
      });
      return page(items.map(sessionJson), next_page, position);
    },
    async operations(context, { kind = [], runner, loop, ...parameters }) {
      const { items, next_page, position } = await lists.operations(context, {
        kinds: kind,
        ...(runner !== undefined && { runner }),
        ...(loop !== undefined && { loop }),
        filter: filterOf(parameters),
        ...(parameters.per_source !== undefined && { perSource: parameters.per_source }),
        ...between(parameters),
        ...paging(parameters),
      });
      return page(items.map(operationJson), next_page, position);
    },
    stats: statsApi(query),
  };
}

function paging({ limit, page, at }: ParametersOf<"sources">): Pick<ListParameters, "limit" | "page" | "at"> {
  return {
    ...(limit !== undefined && { limit }),
    ...(page !== undefined && { page }),
    ...(at !== undefined && { at: at.replace(" ", "+") }),
  };
}

function page<Item>(items: readonly Item[], nextPage: string, position: string): Page<Item> {
  return { items, ...(nextPage !== "" && { nextPage }), position };
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
    clockOffsetMs: source.clock_offset_ms === undefined ? null : String(source.clock_offset_ms),
    lagMs: source.lag_ms === undefined ? null : String(source.lag_ms),
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
    durationMs: operation.duration_ms === undefined ? null : String(operation.duration_ms),
    outcome: textJson(operation.outcome) as AnswerOf<"Operation">["outcome"],
    errorCode: operation.error_code,
    error: operation.error,
    exitCode: operation.exit_code ?? null,
    cacheHit: operation.cache_hit,
    platform: operation.platform,
    startPosition: operation.start_position,
    endPosition: textJson(operation.end_position),
    ...(operation.kind === "loop" && { labels: operation.labels }),
  };
}

/** A value that is not known yet, such as an end or an outcome, is null and never an empty text. */
export function textJson(text: string): string | null {
  return text === "" ? null : text;
}

export function timeJson(time: Timestamp | undefined): string | null {
  return time === undefined ? null : timeToJson(time);
}
