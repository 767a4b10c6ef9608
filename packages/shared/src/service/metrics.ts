import { collectDefaultMetrics, type Gauge, Registry } from "@prometheus-io/client";
import { reportLoopDelay } from "./loop-delay.ts";

export { Counter, Gauge, Histogram, Registry } from "@prometheus-io/client";

/** Timers of the client, which would wake an idle process 100 and 10 times a second, are never due. */
const intervals = { eventLoopMonitoringPrecision: 3_600_000, eventLoopUtilizationTimeout: 2 ** 31 - 1 };

/** A registry whose page has texts at its end, for more series than the client renders in time. */
export class ServiceRegistry extends Registry {
  readonly #texts: (() => Promise<string>)[] = [];

  /** `text`: whole families in Prometheus' text format, each line with its end. */
  addText(text: () => Promise<string>): void {
    this.#texts.push(text);
  }

  override async metrics(): Promise<string> {
    const [own, ...texts] = await Promise.all([super.metrics(), ...this.#texts.map((text) => text())]);
    return [own, ...texts].join("");
  }
}

/** A value, and its labels. */
export type Series = readonly [labels: Readonly<Record<string, string>>, value: number];

/**
 * Gives a gauge the series that are measured now, and no others. It keeps its own until then: two pages may be made at once, and one
 * must not take away what the other has set.
 */
export async function replaceSeries(
  gauge: Gauge<string>,
  measured: Promise<Iterable<Series | undefined>>,
): Promise<void> {
  const all = await measured;
  gauge.reset();
  for (const one of all) if (one !== undefined) gauge.set(...one);
}

/** A registry of its own per process part, with Node's default metrics. Everything is named tapedeck_…. */
export function createMetrics(service: string): ServiceRegistry {
  const registry = new ServiceRegistry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry, ...intervals });
  for (const name of ["summary", "histogram"]) registry.removeSingleMetric(`nodejs_eventloop_utilization_${name}`);
  reportLoopDelay(registry);
  return registry;
}
