import { UpstreamError } from "../../apis/upstream-error.ts";

const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** Milliseconds of a `Grpc-Timeout` header such as "5S" or "1n"; undefined without one, or one that makes no sense. */
export function deadlineMs(header: string | string[] | undefined): number | undefined {
  const match = typeof header === "string" ? /^([0-9]{1,8})([HMSmun])$/.exec(header) : null;
  return match === null ? undefined : Number(match[1]) * (unitMs[match[2] ?? ""] ?? 0);
}

/** DEADLINE_EXCEEDED when the answer takes longer, as grpc-gateway says it. */
export async function withDeadline<T>(answer: Promise<T>, ms: number | undefined): Promise<T> {
  if (ms === undefined) return answer;
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new UpstreamError(4, "context deadline exceeded")), Math.floor(ms));
  // Below a timer's resolution the deadline has passed already.
  if (ms < 1) reject(new UpstreamError(4, "context deadline exceeded"));
  answer.catch(() => {}); // the loser of the race is not an unhandled rejection
  try {
    return await Promise.race([promise, answer]);
  } finally {
    clearTimeout(timer);
  }
}
