import { collectDefaultMetrics, Registry } from "@prometheus-io/client";

export { Counter, Gauge, Histogram, Registry } from "@prometheus-io/client";

/** A registry of its own per process part, with Node's default metrics. Everything is named tapedeck_…. */
export function createMetrics(service: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  return registry;
}
