import { Counter, Gauge, type Registry } from "@tapedeck/shared/service/metrics";

/** Who reads: open streams and the time of the last request, so that a demo nobody watches can pause. */
export type Viewers = {
  /** Counts one request; on a stream, until the signal says that it is over. */
  seen(api: string, stream?: AbortSignal): void;
};

export function viewers(metrics: Registry): Viewers {
  const requests = new Counter({
    name: "tapedeck_gateway_requests_total",
    help: "Requests by API.",
    labelNames: ["api"],
    registers: [metrics],
  });
  const streams = new Gauge({
    name: "tapedeck_gateway_streams",
    help: "Open streams and WebSockets.",
    registers: [metrics],
  });
  const last = new Gauge({
    name: "tapedeck_gateway_last_viewer_timestamp_seconds",
    help: "When somebody last asked or a stream was last open, Unix time; 0 for never.",
    registers: [metrics],
    collect() {
      if (open > 0) this.set(Date.now() / 1000);
    },
  });
  let open = 0;
  const change = (by: number) => {
    open += by;
    streams.set(open);
    last.set(Date.now() / 1000);
  };
  return {
    seen(api, stream) {
      requests.inc({ api });
      change(0);
      if (stream === undefined || stream.aborted) return;
      change(1);
      stream.addEventListener("abort", () => change(-1), { once: true });
    },
  };
}
