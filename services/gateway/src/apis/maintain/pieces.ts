import { TapedeckError } from "@tapedeck/shared/errors/errors";

/**
 * The pieces that a function produces, as a stream with backpressure: the function is at most one piece ahead of the reader.
 * `result`: what the function returns, once the stream has ended.
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
  // Nobody awaits the result when the reader has left the stream.
  result
    .then(
      () => writer.close(),
      (cause: unknown) => writer.abort(cause),
    )
    .catch(() => {})
    .finally(() => signal.removeEventListener("abort", leave));
  return { stream: readable, result };
}
