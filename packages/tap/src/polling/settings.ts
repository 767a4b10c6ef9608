/** A setting in milliseconds; the default for a missing one and for anything that is not a positive number. */
export function milliseconds(text: string | undefined, byDefault: number): number {
  const ms = Number(text);
  return Number.isFinite(ms) && ms > 0 ? ms : byDefault;
}
