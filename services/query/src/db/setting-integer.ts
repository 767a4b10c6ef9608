const maxInteger = 2 ** 31 - 1;

/** Postgres refuses larger numbers in its settings (for milliseconds: 24.8 days). A limit above is none in practice. */
export function settingInteger(value: number): number {
  return Math.min(value, maxInteger);
}
