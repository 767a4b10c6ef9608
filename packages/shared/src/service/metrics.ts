import { collectDefaultMetrics, Registry } from "@prometheus-io/client";
import { reportLoopDelay } from "./loop-delay.ts";

export { Counter, Gauge, Histogram, Registry } from "@prometheus-io/client";

/** Timers of the client, which would wake an idle process 100 and 10 times a second. The first one's metrics are replaced. */
const intervals = { eventLoopMonitoringPrecision: 3_600_000, eventLoopUtilizationTimeout: 5_000 };

/** A registry of its own per process part, with Node's default metrics. Everything is named tapedeck_…. */
export function createMetrics(service: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry, ...intervals });
  reportLoopDelay(registry);
  return registry;
}
