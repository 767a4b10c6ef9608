import { create, toJson } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { BuildStats, ListRequest, Operation, Session, Source } from "@tapedeck/proto/tapedeck/v1/query";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { QueryClient } from "../../query-client.ts";

/** A list as the HTTP API gives it: newest first. */
export type Page<Item> = { readonly items: readonly Item[]; readonly nextPage?: string; readonly position: string };

/** Query parameters of a list, already checked for shape; every value of a repeated parameter. */
export type ListParameters = Readonly<Record<string, readonly string[]>>;

type Wire = { readonly seconds: bigint; readonly nanos: number } | undefined;

export function listsApi(query: QueryClient) {
  const request = (workspace: string, parameters: ListParameters): Partial<ListRequest> => ({
    workspace,
    developers: [...(parameters.developer ?? [])],
    projects: [...(parameters.project ?? [])],
    upstreams: [...(parameters.upstream ?? [])],
    sources: (parameters.source ?? []).map((source) => fullSource(workspace, source)),
    sessions: [...(parameters.session ?? [])],
    kinds: [...(parameters.kind ?? [])],
    subjects: [...(parameters.subject ?? [])],
    outcomes: [...(parameters.outcome ?? [])],
    labels: labelsOf(parameters.label ?? []),
    from: timeOf(parameters, "from"),
    to: timeOf(parameters, "to"),
    limit: limitOf(parameters),
    page: parameters.page?.at(-1) ?? "",
    at: parameters.at?.at(-1) ?? "",
  });

  return {
    async sources(workspace: string, parameters: ListParameters): Promise<Page<object>> {
      const { items, next_page, position } = await query.listSources(request(workspace, parameters));
      return page(items.map(sourceJson), next_page, position);
    },
    async sessions(workspace: string, parameters: ListParameters): Promise<Page<object>> {
      const { items, next_page, position } = await query.listSessions(request(workspace, parameters));
      return page(items.map(sessionJson), next_page, position);
    },
    async operations(workspace: string, parameters: ListParameters): Promise<Page<object>> {
      const { items, next_page, position } = await query.listOperations(request(workspace, parameters));
      return page(items.map(operationJson), next_page, position);
    },
    async buildStats(workspace: string, parameters: ListParameters): Promise<Page<object>> {
      const group = (parameters.group ?? []).flatMap((text) => text.split(",")).filter((name) => name !== "");
      const { items, position } = await query.buildStats({
        workspace,
        group,
        from: timeOf(parameters, "from"),
        to: timeOf(parameters, "to"),
        developers: [...(parameters.developer ?? [])],
        projects: [...(parameters.project ?? [])],
        artifacts: [...(parameters.artifact ?? [])],
      });
      return page(items.map(buildStatsJson), "", position);
    },
  };
}

function page<Item>(items: readonly Item[], nextPage: string, position: string): Page<Item> {
  return { items, ...(nextPage !== "" && { nextPage }), position };
}

function sourceJson(source: Source): object {
  return {
    source: source.source,
    workspace: source.workspace,
    developer: source.developer,
    project: source.project,
    upstream: source.upstream,
    status: source.status,
    currentSession: source.current_session,
    lastEventAt: timeJson(source.last_event_at),
    lastPosition: source.last_position,
    firstPosition: source.first_position,
    developerName: source.developer_name,
    projectName: source.project_name,
    address: source.address,
    gaps: source.gaps,
  };
}

function sessionJson(session: Session): object {
  return {
    session: session.session,
    source: session.source,
    labels: session.labels,
    startedAt: timeJson(session.started_at),
    endedAt: timeJson(session.ended_at),
    endReason: session.end_reason,
    startPosition: session.start_position,
    endPosition: session.end_position,
    upstreamVersion: session.upstream_version,
    gaps: session.gaps,
  };
}

function operationJson(operation: Operation): object {
  return {
    id: operation.id,
    kind: operation.kind,
    subject: operation.subject,
    source: operation.source,
    session: operation.session,
    runner: operation.runner,
    loop: operation.loop,
    startedAt: timeJson(operation.started_at),
    endedAt: timeJson(operation.ended_at),
    durationMs: operation.duration_ms === undefined ? null : String(operation.duration_ms),
    outcome: operation.outcome === "" ? null : operation.outcome,
    errorCode: operation.error_code,
    error: operation.error,
    cacheHit: operation.cache_hit,
    platform: operation.platform,
    startPosition: operation.start_position,
    endPosition: operation.end_position,
  };
}

function buildStatsJson(stats: BuildStats): object {
  return {
    ...stats.group,
    count: String(stats.count),
    failed: String(stats.failed),
    failureRate: stats.failure_rate,
    p50Ms: stats.p50_ms ?? null,
    p90Ms: stats.p90_ms ?? null,
    p99Ms: stats.p99_ms ?? null,
    cached: String(stats.cached),
    canceled: String(stats.canceled),
    unknown: String(stats.unknown),
  };
}

/** RFC 3339 in UTC with the upstream's nanoseconds; null for none. */
export function timeJson(time: Wire): string | null {
  if (time === undefined) return null;
  return toJson(TimestampSchema, create(TimestampSchema, { seconds: time.seconds, nanos: time.nanos }));
}

function timeOf(parameters: ListParameters, name: "from" | "to"): Pick<Timestamp, "seconds" | "nanos"> | undefined {
  const text = parameters[name]?.at(-1);
  if (text === undefined) return undefined;
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) {
    throw new TapedeckError(
      "invalid_argument",
      `${name} "${text}" is not a time: write RFC 3339, 2026-01-31T12:00:00Z`,
      {
        field: name,
      },
    );
  }
  const { seconds, nanos } = timestampFromDate(time);
  return { seconds, nanos };
}

export function limitOf(parameters: ListParameters, name = "limit", most = 1_000): number {
  const text = parameters[name]?.at(-1);
  if (text === undefined) return 0;
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > most) {
    throw new TapedeckError("invalid_argument", `${name} "${text}" is not a whole number from 1 to ${most}`, {
      field: name,
    });
  }
  return limit;
}

function labelsOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new TapedeckError("invalid_argument", `label "${pair}" is not name=value`, { field: "label" });
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

function fullSource(workspace: string, source: string): string {
  return source.split("/").length === 3 ? `${workspace}/${source}` : source;
}
