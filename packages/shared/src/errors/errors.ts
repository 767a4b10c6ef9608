/** Code → gRPC status and HTTP status: the one table for all transports (docs/api.md#errors). */
const table = {
  out_of_range: { grpc: 11, http: 410 },
  position_future: { grpc: 11, http: 416 },
  position_foreign: { grpc: 9, http: 409 },
  unknown_source: { grpc: 5, http: 404 },
  unknown_session: { grpc: 5, http: 404 },
  before_first: { grpc: 5, http: 404 },
  not_found: { grpc: 5, http: 404 },
  source_taken: { grpc: 6, http: 409 },
  ambiguous_source: { grpc: 9, http: 409 },
  invalid_argument: { grpc: 3, http: 400 },
  upstream_away: { grpc: 14, http: 503 },
  not_ready: { grpc: 14, http: 503 },
  refused_dangerous: { grpc: 9, http: 409 },
  unauthenticated: { grpc: 16, http: 401 },
  forbidden: { grpc: 7, http: 403 },
  limit_exceeded: { grpc: 8, http: 429 },
  internal: { grpc: 13, http: 500 },
} as const;

/** The code of an error, the same on every transport. */
export type ErrorCode = keyof typeof table;

/** All codes, in the order of the table. */
export const errorCodes = Object.keys(table) as readonly ErrorCode[];

/**
 * Why events are out of range. Dropped, lost: gone for good, by a limit or by damage. Unreadable: the log may have them
 * again, when a file of its store is back.
 */
export type Loss = "dropped" | "unreadable" | "lost";

/** What an error carries beside its code and its message. */
export type ErrorDetails = {
  /** The field of the request that is wrong. */
  readonly field?: string;
  /** First position that can be asked for. */
  readonly earliest?: string;
  /** Last position that can be asked for. */
  readonly latest?: string;
  readonly choices?: readonly string[];
  /** Only `out_of_range` has it. */
  readonly loss?: Loss;
};

export function isLoss(text: string | undefined): text is Loss {
  return text === "dropped" || text === "unreadable" || text === "lost";
}

export type TapedeckErrorOptions = ErrorOptions & {
  /** Seconds after which the call may succeed. */
  readonly retryAfter?: number;
  /** The end of the message: what to do over HTTP and gRPC, which an assistant's tools don't have. */
  readonly hint?: string;
};

/** An error that a client may see: what was wrong and how to fix it. */
export class TapedeckError extends Error {
  override name = "TapedeckError";
  readonly code: ErrorCode;
  readonly details: ErrorDetails;
  /** After how many seconds to try again, where waiting helps: Retry-After in HTTP, `retry-after` in gRPC's trailers. */
  readonly retryAfter: number | undefined;
  /** The message without its hint. */
  readonly reason: string;

  constructor(code: ErrorCode, reason: string, details: ErrorDetails = {}, options: TapedeckErrorOptions = {}) {
    super(`${reason}${options.hint ?? ""}`, options);
    this.code = code;
    this.reason = reason;
    this.details = details;
    this.retryAfter = options.retryAfter ?? (code === "not_ready" ? 1 : undefined);
  }
}

/** `field`: the field of the request that is wrong; empty or omitted when it is none in particular. */
export function invalidArgument(message: string, field = "", options: TapedeckErrorOptions = {}): TapedeckError {
  return new TapedeckError("invalid_argument", message, field === "" ? {} : { field }, options);
}

/** Whether a text is a code that this version knows. */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(table, text);
}

/** The gRPC status of an error. */
export function grpcStatusOf(code: ErrorCode): number {
  return table[code].grpc;
}

/** The HTTP status of an error. */
export function httpStatusOf(code: ErrorCode): number {
  return table[code].http;
}

/** A TapedeckError as it is; anything else as `internal`, with the cause kept for the service's log only. */
export function fromUnknown(error: unknown): TapedeckError {
  return error instanceof TapedeckError ? error : new TapedeckError("internal", "internal error", {}, { cause: error });
}

/** Body of an error under /api/v1 and in WebSocket, SSE and NDJSON messages. */
export function toErrorBody({
  code,
  message,
  details,
}: TapedeckError): { code: ErrorCode; message: string } & ErrorDetails {
  return { code, message, ...details };
}

export type ErrorInfo = {
  readonly reason: string;
  readonly domain: string;
  readonly metadata: Readonly<Record<string, string>>;
};

/** The same as google.rpc.ErrorInfo. */
export function toErrorInfo({ code, details }: TapedeckError): ErrorInfo {
  const { choices, ...texts } = details;
  return {
    reason: code,
    domain: "tapedeck",
    metadata: { ...texts, ...(choices !== undefined && { choices: choices.join(", ") }) },
  };
}
