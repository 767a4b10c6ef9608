import { fromUnknown, TapedeckError } from "@tapedeck/shared/errors/errors";
import { type LogReader, LogReplacedError } from "@tapedeck/shared/log/log";
import type { Logger } from "@tapedeck/shared/service/logger";
import { Counter, Gauge, type Registry } from "@tapedeck/shared/service/metrics";
import { passedOn } from "@tapedeck/shared/sync/passed-on";
import { UpstreamError } from "./apis/upstream-error.ts";
import type { Audit } from "./audit/audit-log.ts";
import { type RefusedCall, RefusedCalls } from "./limits/refused-calls.ts";

/** The APIs, by transport, as metrics name them. */
export type ApiName =
  | "skaffold grpc"
  | "skaffold http"
  | "rkt grpc"
  | "vagrant grpc"
  | "tapedeck grpc"
  | "recorder"
  | "api"
  /** Calls that end before they reach a service. */
  | "grpc";

/** Counts the calls of one API on one transport. */
export type CallWatch = {
  /** Counts one request; a stream is open until its signal aborts. */
  readonly seen: (stream?: AbortSignal) => void;
  readonly sent: (bytes: number) => void;
  /** Counts an error, logs the cause of `internal`, and gives the error that the client gets. */
  readonly failed: (error: unknown) => TapedeckError | UpstreamError;
};

export type GatewayMetrics = {
  readonly watch: (api: ApiName) => CallWatch;
  /** The same reader, which counts those that follow the log through it. */
  readonly counted: (reader: LogReader) => LogReader;
  readonly refused: (refusal: RefusedCall) => void;
};

/** `audit`: where refused control calls are recorded beside the log. */
export function gatewayMetrics(registry: Registry, logger: Logger, audit: Audit = () => {}): GatewayMetrics {
  const refusedCalls = new RefusedCalls(logger, { audit });
  const openCalls = new OpenCalls(registry);
  const { requests, subscriptions, bytes, errors, refusals } = instruments(registry);
  return {
    watch: (api) => ({
      seen(stream) {
        requests.inc({ api });
        openCalls.count(stream);
      },
      sent: (count) => bytes.inc({ api }, count),
      failed(error) {
        const known = clientError(error);
        errors.inc({ api, code: known instanceof UpstreamError ? "upstream" : known.code });
        if (known instanceof TapedeckError && known.code === "internal") logger.error({ err: error }, "internal error");
        return known;
      },
    }),
    counted: (reader) => ({
      ...reader,
      follow: (from, options) => countedIn(subscriptions, () => reader.follow(from, options)),
      followBatches: (from, options) => countedIn(subscriptions, () => reader.followBatches(from, options)),
      readBatches: (offsets, signal) => countedIn(subscriptions, () => reader.readBatches(offsets, signal)),
    }),
    refused(refusal) {
      refusals.inc({ code: refusal.error.code });
      refusedCalls.write(refusal);
    },
  };
}

function countedIn<T>(open: Gauge, follow: () => AsyncGenerator<T, void>): AsyncGenerator<T, void> {
  return passedOn(follow, { onStart: () => open.inc(), onEnd: () => open.dec() });
}

function instruments(registry: Registry) {
  const registers = [registry];
  return {
    requests: new Counter({
      name: "tapedeck_gateway_requests_total",
      help: "Requests by API.",
      labelNames: ["api"],
      registers,
    }),
    subscriptions: new Gauge({
      name: "tapedeck_gateway_subscriptions",
      help: "Readers that follow the log's end now: streams, and each subscription of a WebSocket.",
      registers,
    }),
    bytes: new Counter({
      name: "tapedeck_gateway_sent_bytes_total",
      help: "Bytes of messages and answers by API, without what the protocol adds.",
      labelNames: ["api"],
      registers,
    }),
    errors: new Counter({
      name: "tapedeck_gateway_errors_total",
      help: "Errors answered to clients by API and code; `upstream`: the upstream's own refusals.",
      labelNames: ["api", "code"],
      registers,
    }),
    refusals: new Counter({
      name: "tapedeck_gateway_control_refused_total",
      help: "Control calls that the gateway refused, by code.",
      labelNames: ["code"],
      registers,
    }),
  };
}

/** Counts the calls that are open, and keeps the time of the last one. */
class OpenCalls {
  readonly #streams: Gauge;
  readonly #last: Gauge;
  #open = 0;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#streams = new Gauge({
      name: "tapedeck_gateway_streams",
      help: "Open streams and WebSockets, and requests that are being answered.",
      registers,
    });
    this.#last = new Gauge({
      name: "tapedeck_gateway_last_viewer_timestamp_seconds",
      help: "When the last request came or a stream was last open, Unix time; 0 for never.",
      registers,
      collect: () => {
        if (this.#open > 0) this.#seenNow();
      },
    });
  }

  /** `stream` aborts when the call is over; undefined for a call that is over at once. */
  count(stream: AbortSignal | undefined): void {
    this.#change(0);
    if (stream === undefined || stream.aborted) return;
    this.#change(1);
    stream.addEventListener("abort", () => this.#change(-1), { once: true });
  }

  #change(by: number): void {
    this.#open += by;
    this.#streams.set(this.#open);
    this.#seenNow();
  }

  #seenNow(): void {
    this.#last.set(Date.now() / 1_000);
  }
}

/** The error that a client gets: nothing internal leaks. */
function clientError(error: unknown): TapedeckError | UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (error instanceof LogReplacedError) {
    return new TapedeckError("not_ready", "the log was replaced by another one: connect again", {}, { cause: error });
  }
  return fromUnknown(error);
}
