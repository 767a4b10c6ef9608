import { messagesBetween, type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import { Counter, createMetrics, Gauge, Histogram, type Registry } from "@tapedeck/shared/service/metrics";
import type { Projected } from "./projecting/project.ts";
import type { SetAsideSource } from "./projecting/set-aside.ts";

export type QueryMetrics = {
  readonly registry: Registry;
  readonly applied: (applied: Projected) => void;
  /** An upstream's answer was compared with the folded state. */
  readonly compared: (source: string, differs: boolean) => void;
  readonly failed: () => void;
};

export type MetricSources = {
  /** The position of the tables. */
  readonly position: () => Offset;
  /** The log's end; undefined while it is unknown. */
  readonly logEnd: () => Promise<Offset | undefined>;
  /** How many events were set aside, by source; empty while the tables can't be read. */
  readonly setAside: () => Promise<readonly Pick<SetAsideSource, "source" | "events">[]>;
};

export function queryMetrics({ position, logEnd, setAside }: MetricSources): QueryMetrics {
  const registry = createMetrics("query");
  const registers = [registry];
  const events = new Counter({ name: "tapedeck_query_events_total", help: "Events applied to the tables.", registers });
  const failures = new Counter({
    name: "tapedeck_query_interruptions_total",
    help: "Interruptions of projecting because the database or the log was away.",
    registers,
  });
  const checks = new Counter({
    name: "tapedeck_query_fold_checks_total",
    help: "Answers of an upstream at rest about its state that were compared with the folded state.",
    labelNames: ["source"],
    registers,
  });
  const drift = new Counter({
    name: "tapedeck_query_fold_drift_total",
    help: "Compared answers whose statuses differ from the folded state.",
    labelNames: ["source"],
    registers,
  });
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
  positionGauges(registry, position, logEnd);
  new Gauge({
    name: "tapedeck_query_set_aside_events",
    help: "Events that could not be applied to the tables, of the 100 sources that had one last.",
    labelNames: ["source"],
    registers,
    async collect() {
      this.reset();
      for (const { source, events: count } of await setAside()) this.set({ source }, count);
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
      checks.inc({ source });
      if (differs) drift.inc({ source });
    },
    failed: () => failures.inc(),
  };
}

/** The position of the tables, and how far the log is ahead of it. */
function positionGauges(registry: Registry, position: () => Offset, logEnd: () => Promise<Offset | undefined>): void {
  const registers = [registry];
  new Gauge({
    name: "tapedeck_query_position",
    help: "The number of the log's message that the tables reflect.",
    registers,
    collect() {
      this.set(sequenceOf(position()));
    },
  });
  new Gauge({
    name: "tapedeck_query_lag_events",
    help: "How many messages of the log the tables are behind.",
    registers,
    async collect() {
      const end = await logEnd();
      if (end !== undefined) this.set(Math.max(0, messagesBetween(position(), end)));
    },
  });
}
