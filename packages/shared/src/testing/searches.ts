/**
 * How far tests search that try many cases: a little in `npm test` and `npm run test:long`, from the same seed each time,
 * and at length in `npm run test:nightly`, from another one each time.
 */
const isLong = process.env.TAPEDECK_TEST_SEARCH === "long";

/** How many cases to try, or which. */
export function searched<Cases>(cases: { readonly short: Cases; readonly long: Cases }): Cases {
  return isLong ? cases.long : cases.short;
}

/** What random numbers begin with: TAPEDECK_TEST_SEED repeats a run that failed. */
export const searchSeed = Number(process.env.TAPEDECK_TEST_SEED ?? (isLong ? Date.now() % 1_000_000 : 20_261_122));

/** After this time a search ends with what it has found. Well within a test's own. */
export const searchLimitMs = isLong ? 300_000 : 30_000;
