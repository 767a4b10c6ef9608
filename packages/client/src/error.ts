export type KnownErrorCode =
  | "out_of_range"
  | "position_future"
  | "position_foreign"
  | "unknown_source"
  | "unknown_session"
  | "before_first"
  | "not_found"
  | "source_taken"
  | "ambiguous_source"
  | "invalid_argument"
  | "upstream_away"
  | "not_ready"
  | "refused_dangerous"
  | "unauthenticated"
  | "forbidden"
  | "limit_exceeded"
  | "internal";

/** The codes of Tapedeck's errors, the same on every transport. A newer Tapedeck may have more. */
export type ErrorCode = KnownErrorCode | (string & {});

/** An error as it is on the wire. */
export type ErrorBody = {
  readonly code: ErrorCode;
  readonly message: string;
  readonly field?: string;
  readonly earliest?: string;
  readonly latest?: string;
  readonly choices?: readonly string[];
};

/** A request that Tapedeck refused, with the reason. */
export class TapedeckError extends Error {
  override name = "TapedeckError";
  readonly code: ErrorCode;
  /** The part of the request that is wrong. */
  readonly field: string | undefined;
  /** The first available position (out_of_range, before_first). */
  readonly earliest: string | undefined;
  /** The last available position (position_future). */
  readonly latest: string | undefined;
  /** The sources that match (ambiguous_source). */
  readonly choices: readonly string[] | undefined;
  /** Seconds after which to try again. Undefined: waiting does not help, or the time is not known. */
  readonly retryAfter: number | undefined;

  constructor({ code, message, field, earliest, latest, choices }: ErrorBody, retryAfter?: number) {
    super(message);
    this.code = code;
    this.field = field;
    this.earliest = earliest;
    this.latest = latest;
    this.choices = choices;
    this.retryAfter = retryAfter;
  }
}

/** The error in an answer's body; undefined when the body is not Tapedeck's. `retryAfter`: the header of that name. */
export function errorIn(body: unknown, retryAfter: string | null = null): TapedeckError | undefined {
  const { error } = (typeof body === "object" && body !== null ? body : {}) as { error?: Partial<ErrorBody> };
  const { code, message } = error ?? {};
  const seconds = /^\d+$/.test(retryAfter ?? "") ? Number(retryAfter) : undefined;
  return typeof code === "string" && typeof message === "string"
    ? new TapedeckError({ ...error, code, message }, seconds)
    : undefined;
}
