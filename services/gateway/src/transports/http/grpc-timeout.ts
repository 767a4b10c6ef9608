import { ownValue } from "@tapedeck/shared/own-value";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
import { UpstreamError } from "../../apis/upstream-error.ts";

const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** The longest delay that a timer accepts. A longer deadline counts as none. */
const maxMs = 2 ** 31 - 1;

/**
 * Milliseconds of a `Grpc-Timeout` header such as "5S" or "1n"; undefined for no deadline.
 * @throws UpstreamError for a malformed header, as grpc-gateway refuses it
 */
export function deadlineMs(header: string | string[] | undefined): number | undefined {
  if (header === undefined || header === "") return undefined;
  const match = typeof header === "string" ? /^([+-]?\d{1,19})([HMSmun])$/.exec(header) : null;
  if (match === null) throw new UpstreamError(3, `invalid grpc-timeout: ${header}`);
  const ms = Number(match[1]) * (ownValue(unitMs, match[2] ?? "") ?? 0);
  return ms === 0 || ms > maxMs ? undefined : ms;
}

export function deadlineExceeded(): UpstreamError {
  return new UpstreamError(4, "context deadline exceeded");
}

/** Throws DEADLINE_EXCEEDED when the answer takes longer, as grpc-gateway words it. */
export async function withDeadline<T>(answer: Promise<T>, ms: number | undefined): Promise<T> {
  if (ms === undefined) return answer;
  const { promise, reject } = Promise.withResolvers<never>();
  // Below a timer's resolution the deadline has passed already.
  if (ms < 1) reject(deadlineExceeded());
  const timer = startTimer(() => reject(deadlineExceeded()), Math.max(1, ms));
  answer.catch(() => {}); // the loser of the race is not an unhandled rejection
  try {
    return await Promise.race([promise, answer]);
  } finally {
    stopTimer(timer);
  }
}
