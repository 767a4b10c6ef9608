import {
  GetJobStreamResponse,
  Job,
  job_StateToJSON,
  GetJobStreamResponse_Terminal_Event as TerminalEvent,
  VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";

/**
 * The content of a message of a job's stream; output is split into events, because their grouping is up to the server.
 */
export type StreamItem =
  | { readonly is: "open" }
  | { readonly is: "state"; readonly step: string; readonly isCanceling: boolean; readonly job: string }
  | { readonly is: "output"; readonly isBuffered: boolean; readonly event: string }
  | { readonly is: "complete" | "unknown"; readonly message: string };

/** In order. Bytes are base64, fields in the order of their definition. */
export function streamItemsIn(messages: readonly Buffer[]): StreamItem[] {
  return messages.flatMap((bytes): readonly StreamItem[] => {
    const { event } = GetJobStreamResponse.decode(bytes);
    switch (event?.$case) {
      case "open":
        return [{ is: "open" }];
      case "state": {
        const { previous, current, canceling, job } = event.value;
        const step = `${job_StateToJSON(previous)}>${job_StateToJSON(current)}`;
        return [{ is: "state", step, isCanceling: canceling, job: job === undefined ? "" : base64(Job, job) }];
      }
      case "terminal": {
        const isBuffered = event.value.buffered;
        return event.value.events.map((one) => ({ is: "output", isBuffered, event: base64(TerminalEvent, one) }));
      }
      case "complete":
        return [{ is: "complete", message: canonical("GetJobStream", bytes) }];
      default:
        return [{ is: "unknown", message: bytes.toString("base64") }];
    }
  });
}

/** The terminal events in messages of a job's stream. */
export function outputOf(messages: readonly Buffer[]): TerminalEvent[] {
  return messages.flatMap((bytes) => {
    const { event } = GetJobStreamResponse.decode(bytes);
    return event?.$case === "terminal" ? event.value.events : [];
  });
}

/** The most terminal events in one message. */
export function largestBatch(messages: readonly Buffer[]): number {
  return Math.max(0, ...messages.map((message) => outputOf([message]).length));
}

/** An answer's bytes, base64, with its fields in the order of their definition: servers may write them in another. */
export function canonical(rpc: string, bytes: Buffer): string {
  const method = Object.values(VagrantService).find(({ path }) => path.endsWith(`/${rpc}`));
  if (method === undefined) throw new Error(`there is no ${rpc}`);
  // Each method has its own messages, which only their union covers.
  const { responseSerialize, responseDeserialize } = method as Method;
  return responseSerialize(responseDeserialize(bytes)).toString("base64");
}

type Method = {
  readonly responseSerialize: (answer: unknown) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => unknown;
};

type Encodes<T> = { readonly encode: (message: T) => { finish(): Uint8Array } };

export function base64<T>(type: Encodes<T>, message: T): string {
  return Buffer.from(type.encode(message).finish()).toString("base64");
}
