import { Counter, Gauge, type Registry, replaceSeries, type Series } from "@tapedeck/shared/service/metrics";
import type { SinkName } from "@tapedeck/shared/sinks/sink-store";
import { sendOutcomes } from "./definition.ts";
import type { SinkCounts, SinkFigures } from "./delivery/running-sink.ts";
import type { RunningSinks } from "./delivery/running-sinks.ts";

/** `forget`: the sink is removed. */
export type SinkMetrics = SinkCounts & { readonly forget: (sink: SinkName) => void };

/** More sinks than this are not named. */
const maxNamed = 100;

const labelNames = ["workspace", "sink"];

const gauges: readonly {
  readonly name: string;
  readonly help: string;
  readonly of: (figures: SinkFigures) => number;
}[] = [
  {
    name: "tapedeck_gateway_sink_lag_events",
    help: "How many messages of the log a sink that this gateway delivers has not passed yet, of 100 sinks.",
    of: ({ lagEvents }) => lagEvents,
  },
  {
    name: "tapedeck_gateway_sink_lag_seconds",
    help: "How long the oldest event that a sink is delivering has been in the log; 0 where nothing waits.",
    of: ({ lagSeconds }) => lagSeconds,
  },
  {
    name: "tapedeck_gateway_sink_parked",
    help: "Events of a sink that its target refuses, and that wait for a person.",
    of: ({ parked }) => parked,
  },
];

/** `running`: the sinks that this gateway delivers now. */
export function sinkMetrics(registry: Registry, running: () => RunningSinks["all"]): SinkMetrics {
  const registers = [registry];
  for (const { name, help, of } of gauges) {
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        const measure = async ({ sink: { workspace, sink }, running: one }: RunningSinks["all"][number]) => {
          const figures = await one.figures().catch(() => undefined);
          return figures && ([{ workspace, sink }, of(figures)] satisfies Series);
        };
        return replaceSeries(this, Promise.all(running().slice(0, maxNamed).map(measure)));
      },
    });
  }
  const events = new Counter({
    name: "tapedeck_gateway_sink_events_total",
    help: "Events that the target of a sink has accepted.",
    labelNames,
    registers,
  });
  const requests = new Counter({
    name: "tapedeck_gateway_sink_requests_total",
    help: "Requests to the target of a sink, by result: delivered; refused; away, when nobody answers or the target asks to come later.",
    labelNames: [...labelNames, "result"],
    registers,
  });
  return {
    delivered: ({ workspace, sink }, count) => events.inc({ workspace, sink }, count),
    attempted: ({ workspace, sink }, result) => requests.inc({ workspace, sink, result }),
    forget: ({ workspace, sink }) => {
      events.remove({ workspace, sink });
      for (const result of sendOutcomes) requests.remove({ workspace, sink, result });
    },
  };
}
