import { TapedeckError } from "@tapedeck/shared/errors/errors";

/**
 * What a function hands out piece by piece, as a stream that it waits for: it gets no further than its reader by more than
 * one piece. `result` is what the function gives, when the stream has ended.
 */
export function pieces<Result>(
  make: (take: (piece: Uint8Array) => Promise<void>) => Promise<Result>,
  signal: AbortSignal,
): { readonly stream: AsyncIterable<Uint8Array>; readonly result: Promise<Result> } {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const leave = () => void writer.abort(signal.reason).catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  const result = make((piece) => writer.write(piece)).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TapedeckError("not_ready", `the log can't be backed up: ${why}`, {}, { cause });
  });
  // Nobody waits for it where the stream was left.
  result
    .then(
      () => writer.close(),
      (cause: unknown) => writer.abort(cause),
    )
    .catch(() => {})
    .finally(() => signal.removeEventListener("abort", leave));
  return { stream: readable, result };
}
