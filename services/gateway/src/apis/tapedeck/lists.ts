import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import type { Operation, Session, Source } from "@tapedeck/proto/tapedeck/v1/lists";
import type { BuildStats } from "@tapedeck/proto/tapedeck/v1/query";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { timeToJson } from "@tapedeck/shared/events/json";
import { type FilterField, parseFilter } from "@tapedeck/shared/filter/filter";
import { parseWhen } from "@tapedeck/shared/filter/time";
import type { QueryClient } from "../../query-client.ts";
import { type ListAsked, type Lister, largestLimit, listMessages, operationKind } from "./list-request.ts";

/** A list as the HTTP API gives it: newest first. */
export type Page<Item> = { readonly items: readonly Item[]; readonly nextPage?: string; readonly position: string };

/** Query parameters, already known by name; every value of a repeated one. */
export type Parameters = Readonly<Record<string, readonly string[]>>;

export type Lists = Readonly<Record<ListName, (workspace: string, parameters: Parameters) => Promise<Page<object>>>>;

export type ListName = keyof typeof listParameters;

/** Query parameters that are filter fields: singular in URLs, plural in a filter. */
export const filterParameters = {
  developer: "developers",
  project: "projects",
  upstream: "upstreams",
  source: "sources",
  session: "sessions",
  kind: "kinds",
  subject: "subjects",
  outcome: "outcomes",
} as const satisfies Record<string, FilterField>;

const ofSources = ["developer", "project", "upstream", "source"] as const;
const paging = ["limit", "page", "at"] as const;

/** What each list can be asked for. */
export const listParameters = {
  sources: [...ofSources, ...paging],
  sessions: [...ofSources, "session", "label", "from", "to", ...paging],
  operations: [...ofSources, "session", "kind", "subject", "outcome", "from", "to", ...paging],
  buildStats: ["group", "developer", "project", "artifact", "from", "to"],
} as const;

/** Lists of what query knows, as JSON. Everything throws TapedeckError. */
export function listsApi(query: Lister & Pick<QueryClient, "buildStats">): Lists {
  const lists = listMessages(query);
  return {
    async sources(workspace, parameters) {
      const { items, next_page, position } = await lists.sources({ workspace }, askedBy(parameters));
      return page(items.map(sourceJson), next_page, position);
    },
    async sessions(workspace, parameters) {
      const { items, next_page, position } = await lists.sessions({ workspace }, askedBy(parameters));
      return page(items.map(sessionJson), next_page, position);
    },
    async operations(workspace, parameters) {
      const { items, next_page, position } = await lists.operations({ workspace }, askedBy(parameters));
      return page(items.map(operationJson), next_page, position);
    },
    async buildStats(workspace, parameters) {
      const { developers = [], projects = [] } = filterOf(parameters);
      const { items, position } = await query.buildStats({
        workspace,
        group: (parameters.group ?? []).flatMap((text) => text.split(",")).filter((name) => name !== ""),
        from: timeOf(parameters, "from"),
        to: timeOf(parameters, "to"),
        developers: [...developers],
        projects: [...projects],
        artifacts: [...(parameters.artifact ?? [])],
      });
      return page(items.map(buildStatsJson), "", position);
    },
  };
}

/** The filter that parameters make: the same as on streams, so that it means the same. */
export function filterOf(parameters: Parameters) {
  const fields = Object.entries(filterParameters).map(([parameter, field]) => [field, parameters[parameter]]);
  return parseFilter(Object.fromEntries(fields));
}

/** A whole number from 1 to `most`; 0 when the parameter is not there. */
export function numberOf(parameters: Parameters, name: string, most = largestLimit): number {
  const text = parameters[name]?.at(-1);
  if (text === undefined) return 0;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && number <= most) return number;
  throw invalid(name, `${name} "${text}" is not a whole number from 1 to ${most}`);
}

function askedBy({ kind: kinds = [], ...parameters }: Parameters): ListAsked {
  const [from, to] = [timeOf(parameters, "from"), timeOf(parameters, "to")];
  const [limit, page, at] = [numberOf(parameters, "limit"), parameters.page?.at(-1), parameters.at?.at(-1)];
  return {
    kinds: kinds.map((kind) => operationKind(kind, "kind")),
    filter: filterOf(parameters),
    labels: labelsOf(parameters.label ?? []),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    limit,
    ...(page !== undefined && { page }),
    ...(at !== undefined && { at: at.replace(" ", "+") }),
  };
}

function timeOf(parameters: Parameters, name: "from" | "to"): Timestamp | undefined {
  const text = parameters[name]?.at(-1);
  if (text === undefined) return undefined;
  const when = parseWhen(text);
  if (when?.type !== "time") throw invalid(name, `${name} "${text}" is not a time such as 2026-01-31T12:00:00Z`);
  const { seconds, nanos } = timestampFromDate(when.time);
  return { seconds, nanos };
}

function labelsOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw invalid("label", `label "${pair}" is not name=value`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

function invalid(field: string, message: string): TapedeckError {
  return new TapedeckError("invalid_argument", message, { field });
}

function page<Item>(items: readonly Item[], nextPage: string, position: string): Page<Item> {
  return { items, ...(nextPage !== "" && { nextPage }), position };
}

function sourceJson(source: Source) {
  return {
    source: source.source,
    workspace: source.workspace,
    developer: source.developer,
    project: source.project,
    upstream: source.upstream,
    status: source.status,
    currentSession: textJson(source.current_session),
    lastEventAt: timeJson(source.last_event_at),
    lastPosition: source.last_position,
    firstPosition: source.first_position,
    developerName: source.developer_name,
    projectName: source.project_name,
    address: source.address,
    gaps: source.gaps,
  };
}

function sessionJson(session: Session) {
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

function operationJson(operation: Operation) {
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
    outcome: textJson(operation.outcome),
    errorCode: operation.error_code,
    error: operation.error,
    exitCode: operation.exit_code ?? null,
    cacheHit: operation.cache_hit,
    platform: operation.platform,
    startPosition: operation.start_position,
    endPosition: textJson(operation.end_position),
  };
}

function buildStatsJson(stats: BuildStats) {
  return {
    ...stats.group,
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

/** What there is not yet (an end, an outcome) is null, and never an empty text. */
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
