import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { ExportTraceServiceRequest } from "@tapedeck/proto/opentelemetry/proto/collector/trace/v1/trace_service";
import type { ResourceSpans } from "@tapedeck/proto/opentelemetry/proto/trace/v1/trace";
import { Semaphore } from "@tapedeck/shared/sync/semaphore";
import type { FormatPass, FormatReader, FormattedSink, SinkEvent, SinkRequest } from "../format.ts";
import { TraceReader } from "./trace-reader.ts";

/** Traces that are read at the same time, so that none waits for a long one. */
const readsAtOnce = 8;

/** A request has more than so many spans only if one trace has. */
const maxSpansPerRequest = 1_000;

export const otlpHeaders: Readonly<Record<string, string>> = {
  "content-type": "application/x-protobuf",
  "content-encoding": "gzip",
};

const compressed = promisify(gzip);

/**
 * Sends a trace when the event that ends it comes, with what this pass remembers of it, or else with what it reads from the log: the same
 * event gives the same spans after a kill.
 */
export class OtlpPass implements FormatPass {
  readonly #sink: FormattedSink;
  readonly #traces: TraceReader;
  readonly #turns = new Semaphore(readsAtOnce);

  constructor(sink: FormattedSink, reader: FormatReader, lateMs: number) {
    this.#sink = sink;
    this.#traces = new TraceReader(sink, reader, lateMs);
  }

  async requests(events: readonly SinkEvent[], signal: AbortSignal): Promise<readonly SinkRequest[]> {
    for (const { recorded } of events) this.#traces.note(recorded);
    const traces = await Promise.all(events.map((event) => this.#tracesAt(event, signal)));
    if (signal.aborted) return [];
    const requests: Promise<SinkRequest>[] = [];
    let gathered: ResourceSpans[] = [];
    for (const [index, event] of events.entries()) {
      gathered.push(...(traces[index] ?? []));
      const isLast = index === events.length - 1;
      const isFull =
        this.#sink.mode === "structured" || spansIn(gathered) + spansIn(traces[index + 1] ?? []) > maxSpansPerRequest;
      if (gathered.length === 0 || !(isLast || isFull)) continue;
      requests.push(requestOf(gathered, event.position, index + 1));
      gathered = [];
    }
    return Promise.all(requests);
  }

  async #tracesAt({ recorded }: SinkEvent, signal: AbortSignal): Promise<readonly ResourceSpans[]> {
    if (!this.#traces.isOfInterest(recorded.event)) return [];
    const release = await this.#turns.acquire(signal);
    if (release === undefined) return [];
    try {
      return await this.#traces.at(recorded, signal);
    } finally {
      release();
    }
  }
}

async function requestOf(resource_spans: ResourceSpans[], id: string, covers: number): Promise<SinkRequest> {
  const body = await compressed(ExportTraceServiceRequest.encode({ resource_spans }).finish());
  return { id, body, headers: otlpHeaders, covers };
}

function spansIn(traces: readonly ResourceSpans[]): number {
  return traces.reduce((sum, { scope_spans }) => sum + (scope_spans[0]?.spans.length ?? 0), 0);
}
