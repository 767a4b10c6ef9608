import { basename, resolve } from "node:path";
import { styleText } from "node:util";
import type { StatusOptions } from "../commands/status.ts";
import { spillHome } from "../run/spill-home.ts";
import { type RunningUp, runningUp } from "../up/lock.ts";
import { countWaitingSpills } from "../up/waiting-spills.ts";
import { apiAt, type Page } from "./api.ts";
import { agoText, bytesText } from "./durations.ts";
import { readMetrics, readProblems, sumOf } from "./metrics.ts";
import { shortSource } from "./sessions.ts";
import { statusColour } from "./status-colour.ts";
import { table } from "./table.ts";

type Source = {
  readonly source: string;
  readonly status: string;
  readonly currentSession: string;
  readonly lastEventAt: string | null;
  readonly address: string;
  readonly gaps: number;
};

/** What waits where; undefined where it can't be told (the services are on another machine, say). */
type Health = {
  readonly spillBytes: number | undefined;
  readonly queryLag: number | undefined;
  readonly waitingSpills: number;
  /** Times that an upstream at rest said otherwise of itself than its events. */
  readonly foldDrift: number | undefined;
  /** What keeps ingest and query from their work, in sentences. */
  readonly problems: readonly string[];
};

export async function status(options: StatusOptions): Promise<void> {
  const { items: known, position } = await apiAt(options.url).get<Page<Source>>("/api/v1/sources", { limit: 1_000 });
  const running = await runningUp(resolve(options.data));
  const items = [...known, ...neverSeen(running, known)];
  const health = await healthOf(running);
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ sources: items, position, ...health })}\n`);
    return;
  }
  if (items.length === 0) console.log("Nothing is recorded yet.");
  else {
    const columns = ["SOURCE", "STATUS", "WHERE", "LAST EVENT", "GAPS"];
    const rows = items.map((source) => [
      shortSource(source.source),
      ...statusCells(source),
      agoText(source.lastEventAt),
      String(source.gaps),
    ]);
    console.log(
      table(
        columns.map((title) => ({ title })),
        rows,
      ),
    );
  }
  console.log(`\n${healthLine(health, position, doorText(running))}`);
  if (health.waitingSpills > 0) console.log(styleText("dim", waitingText(health.waitingSpills, running)));
  for (const problem of health.problems) console.log(styleText("red", problem));
}

/** Of what was imported nobody waits for more. */
function statusCells({ status, address }: Source): readonly [status: string, where: string] {
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
  return [styleText(statusColour(status), status), address || "-"];
}

/** Sources of this machine that have not said a word yet, so that nobody else knows of them. */
function neverSeen(running: RunningUp | undefined, known: readonly Source[]): readonly Source[] {
  const names = new Set(known.map(({ source }) => source));
  const missing = running?.sources.filter(({ source }) => !names.has(source)) ?? [];
  return missing.map(({ source, address }) => ({
    ...{ source, address, status: "waiting", currentSession: "", lastEventAt: null, gaps: 0 },
  }));
}

async function healthOf(running: RunningUp | undefined): Promise<Health> {
  const ask = async (service: "ingest" | "query") => {
    const address = running?.addresses[service];
    if (address === undefined) return { problems: [] };
    const [metrics, problems] = await Promise.all([readMetrics(address), readProblems(address)]);
    return { metrics, problems: problems.map((problem) => `${service}: ${problem}`) };
  };
  const [ingest, query] = await Promise.all([ask("ingest"), ask("query")]);
  return {
    spillBytes: sumOf(ingest.metrics, "tapedeck_ingest_spill_bytes"),
    queryLag: sumOf(query.metrics, "tapedeck_query_lag_events"),
    foldDrift: sumOf(query.metrics, "tapedeck_query_fold_drift_total"),
    waitingSpills: await countWaitingSpills(spillHome(process.env)),
    problems: [...ingest.problems, ...query.problems],
  };
}

/** A Tapedeck that records takes them within seconds; the demo never does. */
function waitingText(waiting: number, running: RunningUp | undefined): string {
  const runs = waiting === 1 ? "1 recorded run waits" : `${waiting} recorded runs wait`;
  return running?.mode === "demo" ? `${runs} for the end of the demo: npm start -- --no-demo` : `${runs} to be taken`;
}

/** How people get in there; nothing for who is open to all on this machine. */
function doorText(running: RunningUp | undefined): string | undefined {
  const { tls, auth } = running?.door ?? {};
  const parts = [tls ? "TLS" : "", auth === "tokens" ? "with tokens" : ""].filter((part) => part !== "");
  return parts.length === 0 ? undefined : parts.join(", ");
}

function healthLine({ spillBytes, queryLag, foldDrift }: Health, position: string, door: string | undefined): string {
  const parts = [
    `position ${position}`,
    door,
    queryLag === undefined ? undefined : queryLag === 0 ? "tables up to date" : `tables ${queryLag} events behind`,
    spillBytes === undefined ? undefined : `spill ${spillBytes === 0 ? "empty" : bytesText(spillBytes)}`,
    foldDrift ? `state differed from the upstream's own ${foldDrift} times (see query's log)` : undefined,
  ];
  return styleText("dim", parts.filter((part) => part !== undefined).join(" · "));
}
