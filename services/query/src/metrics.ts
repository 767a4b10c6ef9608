import { messagesBetween, type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import {
  Counter,
  createMetrics,
  Gauge,
  Histogram,
  type Registry,
  replaceSeries,
  type Series,
} from "@tapedeck/shared/service/metrics";
import { SourceValues } from "@tapedeck/shared/service/source-values";
import type { Projected } from "./projecting/project.ts";
import type { SetAsideSource } from "./projecting/set-aside.ts";
import type { WorkspaceState } from "./projecting/workspace-state.ts";
import { addTotals, type TotalMetricsOptions } from "./totals/total-metrics.ts";

export type QueryMetrics = {
  readonly registry: Registry;
  readonly applied: (applied: Projected) => void;
  /** An upstream's answer was compared with the folded state. */
  readonly compared: (source: string, differs: boolean) => void;
  readonly failed: () => void;
};

export type MetricSources = {
  /** The workspaces that are projected. */
  readonly states: () => readonly Pick<WorkspaceState, "workspace" | "progress" | "log" | "epoch" | "waitingFor">[];
  /** Whether this query says what is recorded in a workspace. Only one may: Prometheus adds up what several say. */
  readonly isReporter: (workspace: string) => boolean;
  /** How many events were set aside, by source; empty while the tables can't be read. */
  readonly setAside: () => Promise<readonly Pick<SetAsideSource, "source" | "events">[]>;
  /** The tables with the sums of what is recorded. */
  readonly totals: Omit<TotalMetricsOptions, "workspaces">;
};

export function queryMetrics({ states, isReporter, setAside, totals }: MetricSources): QueryMetrics {
  const registry = createMetrics("query");
  const registers = [registry];
  const events = new Counter({ name: "tapedeck_query_events_total", help: "Events applied to the tables.", registers });
  const failures = new Counter({
    name: "tapedeck_query_interruptions_total",
    help: "Interruptions of projecting because the database or the log was away.",
    registers,
  });
  const compared = comparedCounts(registry);
  const size = new Histogram({
    name: "tapedeck_query_batch_events",
    help: "Events per batch, which is one transaction.",
    buckets: [1, 3, 10, 30, 100, 300, 1_000],
    registers,
  });
  const duration = new Histogram({
    name: "tapedeck_query_batch_seconds",
    help: "Time per batch, commit included.",
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    registers,
  });
  positionGauges(registry, states);
  addTotals(registry, { ...totals, workspaces: caughtUpOf(states, isReporter) });
  new Gauge({
    name: "tapedeck_query_set_aside_events",
    help: "Events that could not be applied to the tables, of the 100 sources that had one last.",
    labelNames: ["source"],
    registers,
    collect() {
      const series = async () => (await setAside()).map(({ source, events }): Series => [{ source }, events]);
      return replaceSeries(this, series());
    },
  });
  return {
    registry,
    applied({ events: count, ms }) {
      if (count === 0) return;
      events.inc(count);
      size.observe(count);
      duration.observe(ms / 1_000);
    },
    compared(source, differs) {
      const counts = compared.of(source);
      counts.checks++;
      if (differs) counts.drift++;
    },
    failed: () => failures.inc(),
  };
}

function comparedCounts(registry: Registry) {
  const compared = new SourceValues(() => ({ checks: 0, drift: 0 }));
  const counter = (name: string, of: "checks" | "drift", help: string) =>
    new Counter({
      name,
      help,
      labelNames: ["source"],
      registers: [registry],
      collect() {
        this.reset();
        for (const [source, { [of]: count }] of compared) if (count > 0) this.inc({ source }, count);
      },
    });
  counter(
    "tapedeck_query_fold_checks_total",
    "checks",
    "Answers of an upstream at rest about its state that were compared with the folded state.",
  );
  counter("tapedeck_query_fold_drift_total", "drift", "Compared answers whose statuses differ from the folded state.");
  return compared;
}

/** More workspaces than this are not named. */
const maxWorkspaces = 100;

/** The position of the tables of each workspace, and how far its log is ahead of it. */
function positionGauges(registry: Registry, states: MetricSources["states"]): void {
  const registers = [registry];
  const labelNames = ["workspace"];
  const named = () => states().slice(0, maxWorkspaces);
  new Gauge({
    name: "tapedeck_query_position",
    help: "The number of the message in the log of the workspace that the tables reflect, of 100 workspaces.",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { workspace, progress } of named()) this.set({ workspace }, sequenceOf(progress.position));
    },
  });
  new Gauge({
    name: "tapedeck_query_lag_events",
    help: "How many messages of the log of the workspace the tables are behind, of 100 workspaces.",
    labelNames,
    registers,
    collect() {
      const measure = async ({ workspace, progress, log }: ReturnType<typeof named>[number]) => {
        const end = await log?.bounds().catch(() => undefined);
        const lag = end && Math.max(0, messagesBetween(progress.position, end.lastOffset));
        return lag === undefined ? undefined : ([{ workspace }, lag] satisfies Series);
      };
      return replaceSeries(this, Promise.all(named().map(measure)));
    },
  });
}

/** Messages that a workspace may be behind and is still taken for caught up. */
const maxBehind = 1_000;

/**
 * The workspaces that this query reports, whose tables follow their logs and have been at the end once. Tables that have gone
 * back since, as those of a Postgres that failed over to one with fewer rows, come when they are there again: sums never fall.
 */
function caughtUpOf(
  states: MetricSources["states"],
  isReporter: MetricSources["isReporter"],
): () => Promise<readonly string[]> {
  /** How far their tables had come, by workspace and epoch. */
  const caughtUp = new Map<string, Offset>();
  const isCaughtUp = async ({ workspace, progress, log, epoch, waitingFor }: ReturnType<typeof states>[number]) => {
    if (!isReporter(workspace) || waitingFor !== undefined || log === undefined) return false;
    const name = `${workspace} ${epoch}`;
    const before = caughtUp.get(name);
    const isNearEnd = async () => {
      const end = await log.bounds().catch(() => undefined);
      return end !== undefined && messagesBetween(progress.position, end.lastOffset) <= maxBehind;
    };
    if (before === undefined ? !(await isNearEnd()) : progress.position < before) return false;
    caughtUp.set(name, progress.position);
    return true;
  };
  return async () => {
    const all = states();
    const areCaughtUp = await Promise.all(all.map(isCaughtUp));
    return all.filter((_, index) => areCaughtUp[index]).map(({ workspace }) => workspace);
  };
}
