/** A piece of text, in UTF-16 units; `end` is exclusive. */
export type TextSpan = { readonly start: number; readonly end: number };

/** Sorts spans and merges those that overlap or touch. */
export function merged(spans: readonly TextSpan[]): TextSpan[] {
  const out: TextSpan[] = [];
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    const before = out.at(-1);
    if (before === undefined || span.start > before.end) out.push(span);
    else if (span.end > before.end) out[out.length - 1] = { start: before.start, end: span.end };
  }
  return out.filter(({ start, end }) => end > start);
}
