import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import type { Operation, Session, Source } from "@tapedeck/proto/tapedeck/v1/lists";
import type { BuildStats } from "@tapedeck/proto/tapedeck/v1/query";
import { timeToJson } from "@tapedeck/shared/events/time-text";
import { parseWhen } from "@tapedeck/shared/filter/time";
import type { QueryClient } from "../../query-client.ts";
import type { Answer } from "./answers.ts";
import { type ListAsked, type ListContext, type Lister, listMessages } from "./list-request.ts";
import { type Asked, filterOf, type groups } from "./parameters.ts";

/** A page of a list in the HTTP API: newest first. */
export type Page<Item> = { readonly items: readonly Item[]; readonly nextPage?: string; readonly position: string };

type List<Name extends "sources" | "sessions" | "operations" | "buildStats", Item> = (
  context: ListContext,
  asked: Asked<Name>,
) => Promise<Page<Item>>;

export type Lists = {
  readonly sources: List<"sources", Answer<"Source">>;
  readonly sessions: List<"sessions", Answer<"Session">>;
  readonly operations: List<"operations", Answer<"Operation">>;
  readonly buildStats: List<"buildStats", Answer<"BuildStats">>;
};

/** Lists of what query knows, as JSON. Everything throws TapedeckError. */
export function listsApi(query: Lister & Pick<QueryClient, "buildStats">): Lists {
  const lists = listMessages(query);
  return {
    async sources(context, asked) {
      const { items, next_page, position } = await lists.sources(context, {
        filter: filterOf(asked),
        ...paging(asked),
      });
      return page(items.map(sourceJson), next_page, position);
    },
    async sessions(context, asked) {
      const { items, next_page, position } = await lists.sessions(context, {
        filter: filterOf(asked),
        labels: labelsOf(asked.label ?? []),
        ...between(asked),
        ...paging(asked),
      });
      return page(items.map(sessionJson), next_page, position);
    },
    async operations(context, { kind = [], ...asked }) {
      const { items, next_page, position } = await lists.operations(context, {
        kinds: kind,
        filter: filterOf(asked),
        ...between(asked),
        ...paging(asked),
      });
      return page(items.map(operationJson), next_page, position);
    },
    async buildStats({ workspace, minPosition = "" }, asked) {
      const { developers = [], projects = [] } = filterOf({ developer: asked.developer, project: asked.project });
      const { items, position } = await query.buildStats({
        workspace,
        group: asked.group ?? [],
        ...between(asked),
        developers: [...developers],
        projects: [...projects],
        artifacts: asked.artifact ?? [],
        min_position: minPosition,
      });
      return page(items.map(buildStatsJson), "", position);
    },
  };
}

function paging({ limit, page, at }: Asked<"sources">): Pick<ListAsked, "limit" | "page" | "at"> {
  return {
    ...(limit !== undefined && { limit }),
    ...(page !== undefined && { page }),
    ...(at !== undefined && { at: at.replace(" ", "+") }),
  };
}

function between({ from, to }: Pick<Asked<"sessions">, "from" | "to">): Pick<ListAsked, "from" | "to"> {
  return { ...(from !== undefined && { from: timeOf(from) }), ...(to !== undefined && { to: timeOf(to) }) };
}

function timeOf(text: string): Timestamp {
  const when = parseWhen(text);
  if (when?.type !== "time") throw new Error(`"${text}" passed the check of its parameter`);
  const { seconds, nanos } = timestampFromDate(when.time);
  return { seconds, nanos };
}

function labelsOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

function page<Item>(items: readonly Item[], nextPage: string, position: string): Page<Item> {
  return { items, ...(nextPage !== "" && { nextPage }), position };
}

function sourceJson(source: Source): Answer<"Source"> {
  return {
    source: source.source,
    workspace: source.workspace,
    developer: source.developer,
    project: source.project,
    upstream: source.upstream,
    status: source.status as Answer<"Source">["status"],
    currentSession: textJson(source.current_session),
    lastEventAt: timeJson(source.last_event_at),
    lastPosition: source.last_position,
    firstPosition: source.first_position,
    developerName: source.developer_name,
    projectName: source.project_name,
    address: source.address,
    gaps: source.gaps,
    notHeardSince: timeJson(source.not_heard_since),
  };
}

function sessionJson(session: Session): Answer<"Session"> {
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
  };
}

function operationJson(operation: Operation): Answer<"Operation"> {
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
    outcome: textJson(operation.outcome) as Answer<"Operation">["outcome"],
    errorCode: operation.error_code,
    error: operation.error,
    exitCode: operation.exit_code ?? null,
    cacheHit: operation.cache_hit,
    platform: operation.platform,
    startPosition: operation.start_position,
    endPosition: textJson(operation.end_position),
  };
}

function buildStatsJson(stats: BuildStats): Answer<"BuildStats"> {
  return {
    ...(stats.group as { readonly [Name in (typeof groups)[number]]?: string }),
    count: String(stats.count),
    failed: String(stats.failed),
    failureRate: stats.failure_rate,
    p50Ms: wholeJson(stats.p50_ms),
    p90Ms: wholeJson(stats.p90_ms),
    p99Ms: wholeJson(stats.p99_ms),
    cached: String(stats.cached),
    canceled: String(stats.canceled),
    unknown: String(stats.unknown),
  };
}

/** A value that is not known yet, such as an end or an outcome, is null and never an empty text. */
function textJson(text: string): string | null {
  return text === "" ? null : text;
}

/** A percentile may lie between two builds. */
function wholeJson(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms);
}

function timeJson(time: Timestamp | undefined): string | null {
  return time === undefined ? null : timeToJson(time);
}
