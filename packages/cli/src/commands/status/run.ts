import { basename, resolve } from "node:path";
import { plural } from "@tapedeck/client/lanes/format";
import { commandToStart } from "@tapedeck/shared/installation";
import { largestPage } from "@tapedeck/shared/largest-page";
import { namePart } from "@tapedeck/shared/source";
import { apiAt, type Page } from "../../api/api.ts";
import { type ListFilter, listParameters } from "../../api/list-filter.ts";
import { readHealthReport, readMetrics, sumOf } from "../../api/metrics.ts";
import { setAsideLines } from "../../api/set-aside.ts";
import { coloured } from "../../display/colour.ts";
import { agoText, bytesText, durationText } from "../../display/durations.ts";
import { print, printJson } from "../../display/output.ts";
import { shortSource } from "../../display/source-name.ts";
import { statusColour } from "../../display/status-colour.ts";
import { table } from "../../display/table.ts";
import { type RunningUp, runningUp } from "../../local-server/lock.ts";
import { isEmptyHome, spillHome } from "../../recording/spill-home.ts";
import { matchingSources } from "../../sources/matching.ts";

export type StatusOptions = Omit<ListFilter, "since" | "until"> & {
  readonly url?: string;
  readonly json?: boolean;
  readonly data: string;
  readonly limit?: number;
};

type Source = {
  readonly source: string;
  readonly status: string;
  readonly currentSession: string;
  readonly lastEventAt: string | null;
  readonly address: string;
  readonly gaps: number;
  readonly notHeardSince: string | null;
  /** See Source of the client. */
  readonly clockOffsetMs: number | null;
};

/** What waits where; undefined if it cannot be read, for example because the services run on another machine. */
type Health = {
  readonly spillBytes: number | undefined;
  readonly queryLag: number | undefined;
  readonly waitingSpills: number;
  /** How often an upstream at rest reported a state that differs from its events. */
  readonly foldDrift: number | undefined;
  /** What keeps ingest and query from working, in sentences. */
  readonly problems: readonly string[];
  /** Warnings that do not stop anything. */
  readonly warnings: readonly string[];
};

export async function status(options: StatusOptions): Promise<void> {
  const api = apiAt(options.url);
  const running = await runningUp(resolve(options.data));
  const { upstream, session, label, artifact } = options;
  const ofSessions = listParameters({ upstream, session, label, artifact }, undefined);
  const { items: known, position } = await api
    .get<Page<Source>>("/api/v1/sources", { ...ofSessions, limit: largestPage })
    .catch(async (error: unknown) => {
      // If the list is unavailable, the reason is shown if it is known.
      if (!options.json) printHealthReport(await healthOf(running, api.base));
      throw error;
    });
  const isAllKnown = Object.values(ofSessions).every((value) => value === undefined);
  const unknown = isAllKnown ? neverSeen(running, known) : [];
  const all = [...known, ...unknown].toSorted((a, b) => (a.source < b.source ? -1 : 1));
  const items = narrowed(all, options).slice(0, options.limit);
  const [health, setAside] = await Promise.all([healthOf(running, api.base), setAsideLines(api)]);
  if (options.json) {
    printJson({ sources: items, position, ...health, setAside });
    return;
  }
  if (items.length === 0) print(all.length === 0 && isAllKnown ? "Nothing is recorded yet." : "No matching sources.");
  else {
    const rows = items.map((source) => [
      shortSource(source.source),
      ...statusCells(source),
      agoText(source.lastEventAt),
      String(source.gaps),
    ]);
    const others = ["STATUS", "WHERE", "LAST EVENT", "GAPS"].map((title) => ({ title }));
    print(table([{ title: "SOURCE", isName: true }, ...others], rows));
  }
  print(`\n${healthLine(health, position, accessText(running))}`);
  if (health.waitingSpills > 0) print(coloured("dim", waitingText(health.waitingSpills, running)));
  const clocks = items.flatMap(clockWarnings);
  printHealthReport({ problems: health.problems, warnings: [...health.warnings, ...setAside, ...clocks] });
}

function narrowed(all: readonly Source[], { source: texts, developer, project }: StatusOptions): readonly Source[] {
  const names = all.map(({ source }) => source);
  const meant = texts && new Set(texts.flatMap((text) => matchingSources(text, names).sources));
  return all.filter(({ source }) => {
    const [, ofDeveloper = "", ofProject = ""] = source.split("/");
    return (
      (meant?.has(source) ?? true) &&
      (developer?.map(namePart).includes(ofDeveloper) ?? true) &&
      (project?.map(namePart).includes(ofProject) ?? true)
    );
  });
}

/**
 * One warning, or none for a clock that agrees. A clock that is behind looks the same as events that were recorded late.
 */
export function clockWarnings({ source, clockOffsetMs }: Pick<Source, "source" | "clockOffsetMs">): readonly string[] {
  if (clockOffsetMs === null) return [];
  const off = durationText(Math.abs(clockOffsetMs));
  const how =
    clockOffsetMs > 0 ? `${off} ahead of the log's` : `${off} behind the log's, or its events were recorded late`;
  return [`the clock of ${shortSource(source)} is ${how}: times and durations are unreliable`];
}

function printHealthReport({ problems, warnings }: Pick<Health, "problems" | "warnings">): void {
  for (const problem of problems) print(coloured("red", problem));
  for (const warning of warnings) print(coloured("yellow", warning));
}

/** An imported source is not waiting for more: of event logs it has the files, else the source that was exported. */
export function statusCells({
  status,
  address,
  notHeardSince,
}: Pick<Source, "status" | "address" | "notHeardSince">): readonly [status: string, where: string] {
  if (address.startsWith("session of ") && status !== "recording") return ["imported", address];
  const files = /^file:(.*)$/.exec(address)?.[1];
  if (files !== undefined && status !== "recording") {
    return [
      "imported",
      files
        .split(", ")
        .map((file) => basename(file))
        .join(", "),
    ];
  }
  const since = notHeardSince === null ? "" : `, last seen ${agoText(notHeardSince)}`;
  return [`${coloured(statusColour(status), status)}${since}`, address || "-"];
}

/** Sources of this machine that have not been heard yet, so only this machine lists them. */
function neverSeen(running: RunningUp | undefined, known: readonly Source[]): readonly Source[] {
  const names = new Set(known.map(({ source }) => source));
  const missing = running?.sources.filter(({ source }) => !names.has(source)) ?? [];
  return missing.map(({ source, address }) => ({
    source,
    address,
    status: "waiting",
    currentSession: "",
    lastEventAt: null,
    gaps: 0,
    notHeardSince: null,
    clockOffsetMs: null,
  }));
}

async function healthOf(running: RunningUp | undefined, gateway: string): Promise<Health> {
  const ask = async (service: "ingest" | "query") => {
    const address = running?.addresses[service];
    if (address === undefined) return { problems: [], warnings: [] };
    const [metrics, { problems, warnings }] = await Promise.all([
      readMetrics(address),
      readHealthReport(`http://${address}`),
    ]);
    return { metrics, warnings, problems: problems.map((problem) => `${service}: ${problem}`) };
  };
  // The gateway reports on the other services, wherever they run.
  const [ingest, query, reported] = await Promise.all([ask("ingest"), ask("query"), readHealthReport(gateway)]);
  const here = [...ingest.problems, ...query.problems];
  const fromGateway = running === undefined ? reported.problems.map((problem) => `gateway: ${problem}`) : [];
  return {
    spillBytes: sumOf(ingest.metrics, "tapedeck_ingest_spill_bytes"),
    queryLag: sumOf(query.metrics, "tapedeck_query_lag_events"),
    foldDrift: sumOf(query.metrics, "tapedeck_query_fold_drift_total"),
    waitingSpills: await countWaitingSpills(),
    problems: [...here, ...fromGateway],
    warnings: [...new Set([...ingest.warnings, ...reported.warnings])],
  };
}

async function countWaitingSpills(): Promise<number> {
  const home = spillHome(process.env);
  return isEmptyHome(home) ? 0 : (await import("../../local-server/waiting-spills.ts")).countWaiting(home);
}

/** A Tapedeck that records takes them within seconds; the demo never does. */
function waitingText(waiting: number, running: RunningUp | undefined): string {
  const runs = waiting === 1 ? "1 recorded run waits" : `${waiting} recorded runs wait`;
  return running?.mode === "demo"
    ? `${runs} for the end of the demo: ${commandToStart("--no-demo")}`
    : `${runs} to be delivered`;
}

/** How people get in there; nothing for who is open to all on this machine. */
function accessText(running: RunningUp | undefined): string | undefined {
  const { tls, auth } = running?.access ?? {};
  const parts = [tls ? "TLS" : "", auth === "tokens" ? "with tokens" : ""].filter((part) => part !== "");
  return parts.length === 0 ? undefined : parts.join(", ");
}

function healthLine({ spillBytes, queryLag, foldDrift }: Health, position: string, access: string | undefined): string {
  const parts = [
    `position ${position}`,
    access,
    queryLag === undefined
      ? undefined
      : queryLag === 0
        ? "tables up to date"
        : `tables ${plural(queryLag, "event")} behind`,
    spillBytes === undefined ? undefined : `spill ${spillBytes === 0 ? "empty" : bytesText(spillBytes)}`,
    foldDrift ? `state differed from the upstream's own ${plural(foldDrift, "time")} (see query's log)` : undefined,
  ];
  return coloured("dim", parts.filter((part) => part !== undefined).join(" · "));
}
