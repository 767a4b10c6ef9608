import { fromUnknown, TapedeckError } from "@tapedeck/shared/errors/errors";
import { type LogReader, LogReplacedError } from "@tapedeck/shared/log/log";
import type { Logger } from "@tapedeck/shared/service/logger";
import { Counter, Gauge, type Registry } from "@tapedeck/shared/service/metrics";
import { UpstreamError } from "./apis/upstream-error.ts";
import { type Refusal, RefusedCalls } from "./limits/refused-calls.ts";

/** The APIs, by transport, as metrics name them. */
export type ApiName =
  | "skaffold grpc"
  | "skaffold http"
  | "rkt grpc"
  | "vagrant grpc"
  | "tapedeck grpc"
  | "recorder"
  | "api"
  /** Calls that no service came to know of. */
  | "grpc";

/** What a transport tells about its calls. */
export type CallWatch = {
  /** One request; of a stream until the signal says that it is over. */
  readonly seen: (stream?: AbortSignal) => void;
  readonly sent: (bytes: number) => void;
  /** Counts what went wrong, keeps the cause of `internal` in the service's log, and gives what the client is told. */
  readonly failed: (error: unknown) => TapedeckError | UpstreamError;
};

export type GatewayMetrics = {
  readonly watch: (door: ApiName) => CallWatch;
  /** The same reader; what follows the log through it is counted. */
  readonly counted: (reader: LogReader) => LogReader;
  readonly refused: (refusal: Refusal) => void;
};

export function gatewayMetrics(registry: Registry, logger: Logger): GatewayMetrics {
  const registers = [registry];
  const refusedCalls = new RefusedCalls(logger);
  const requests = new Counter({
    name: "tapedeck_gateway_requests_total",
    help: "Requests by API.",
    labelNames: ["api"],
    registers,
  });
  const streams = new Gauge({
    name: "tapedeck_gateway_streams",
    help: "Open streams and WebSockets, and requests that are being answered.",
    registers,
  });
  const subscriptions = new Gauge({
    name: "tapedeck_gateway_subscriptions",
    help: "Who follows the log's end now: streams, and each subscription of a WebSocket.",
    registers,
  });
  const bytes = new Counter({
    name: "tapedeck_gateway_sent_bytes_total",
    help: "Bytes of messages and answers by API, without what the protocol adds.",
    labelNames: ["api"],
    registers,
  });
  const errors = new Counter({
    name: "tapedeck_gateway_errors_total",
    help: "Errors told to clients by API and code; `upstream`: the upstream's own refusals.",
    labelNames: ["api", "code"],
    registers,
  });
  const refusals = new Counter({
    name: "tapedeck_gateway_control_refused_total",
    help: "Control calls that the gateway refused, by code.",
    labelNames: ["code"],
    registers,
  });
  const last = new Gauge({
    name: "tapedeck_gateway_last_viewer_timestamp_seconds",
    help: "When somebody last asked or a stream was last open, Unix time; 0 for never.",
    registers,
    collect() {
      if (open > 0) this.set(Date.now() / 1_000);
    },
  });
  let open = 0;
  const change = (by: number) => {
    open += by;
    streams.set(open);
    last.set(Date.now() / 1_000);
  };

  return {
    watch: (api) => ({
      seen(stream) {
        requests.inc({ api });
        change(0);
        if (stream === undefined || stream.aborted) return;
        change(1);
        stream.addEventListener("abort", () => change(-1), { once: true });
      },
      sent: (count) => bytes.inc({ api }, count),
      failed(error) {
        const told = toldOf(error);
        errors.inc({ api, code: told instanceof UpstreamError ? "upstream" : told.code });
        if (told instanceof TapedeckError && told.code === "internal") logger.error({ err: error }, "internal error");
        return told;
      },
    }),
    counted: (reader) => ({
      ...reader,
      async *follow(from, options) {
        subscriptions.inc();
        try {
          yield* reader.follow(from, options);
        } finally {
          subscriptions.dec();
        }
      },
    }),
    refused(refusal) {
      refusals.inc({ code: refusal.error.code });
      refusedCalls.write(refusal);
    },
  };
}

/** What a client may know of an error: nothing leaks. */
function toldOf(error: unknown): TapedeckError | UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (error instanceof LogReplacedError) {
    return new TapedeckError("not_ready", "the log was replaced by another one: connect again", {}, { cause: error });
  }
  return fromUnknown(error);
}
