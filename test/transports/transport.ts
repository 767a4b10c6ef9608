import type { Info } from "../stack/error-info.ts";

/** One message of a subscription: the same on every transport. */
export type Message = {
  readonly type: "event" | "caught_up" | "bookmark" | "complete" | "state";
  /** The reader's position after this message. */
  readonly position: string;
  /** The message, if it is an event. */
  readonly event?: ReceivedEvent;
};

export type ReceivedEvent = { readonly id: string; readonly kind: string; readonly source: string };

/** The parts of a request that every transport has. */
export type StreamRequest = {
  readonly after?: string;
  readonly until?: string;
  readonly speed?: number;
  readonly filter?: StreamFilter;
  readonly state?: boolean;
};

/** The fields of the one filter, in the plural. */
export type StreamFilter = Readonly<
  Partial<
    Record<
      "developers" | "projects" | "upstreams" | "sources" | "sessions" | "kinds" | "subjects" | "outcomes",
      readonly string[]
    >
  >
>;

/** A gateway's addresses ("host:port" each), and the token for calls. */
export type Endpoint = { readonly grpc: string; readonly http: string; readonly token?: string };

/** A way to read a subscription, with the client that people would use for it. */
export type Transport = {
  readonly name: string;
  /**
   * Opens a subscription on a separate connection. The connection is read only while the caller waits for the next
   * message: otherwise data in flight waits in the kernel and then at the gateway. Ends when the server ends it.
   * @throws Refused for an error of the gateway; ConnectionLost for anything else, the signal included
   */
  read(endpoint: Endpoint, request: StreamRequest, signal: AbortSignal): AsyncGenerator<Message, void>;
};

/** The gateway's own error, from the shared error table. */
export class Refused extends Error {
  override name = "Refused";
  readonly body: ErrorBody;

  constructor(body: ErrorBody) {
    super(`${body.code}: ${body.message}`);
    this.body = body;
  }
}

/** An error as a client sees it; `status`: gRPC's or HTTP's, where the transport has one. */
export type ErrorBody = {
  readonly code: string;
  readonly message: string;
  readonly status?: number;
  readonly field?: string;
  readonly earliest?: string;
  readonly latest?: string;
  readonly choices?: readonly string[];
};

export class ConnectionLost extends Error {
  override name = "ConnectionLost";
}

/** Converts an error body of HTTP or WebSocket; a body that breaks off is a lost connection. */
export function refused(body: unknown, status?: number): Refused | ConnectionLost {
  const error = (body as { error?: ErrorBody } | undefined)?.error;
  if (error?.code === undefined) return new ConnectionLost(`an answer ${status} without an error`);
  return new Refused({ ...error, ...(status !== undefined && { status }) });
}

/** Converts google.rpc.ErrorInfo likewise. */
export function refusedBy({ reason, metadata }: Info, message: string, status: number): Refused {
  const { choices, ...texts } = metadata;
  return new Refused({
    ...texts,
    code: reason,
    message,
    status,
    ...(choices !== undefined && { choices: choices.split(", ") }),
  });
}
