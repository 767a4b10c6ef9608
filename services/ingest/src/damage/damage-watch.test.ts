import { silentLogger } from "@tapedeck/shared/service/logger";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { DamageWatch } from "./damage-watch.ts";

const dayMs = 86_400_000;

function watchEvery(everyMs: number, reported = new Map<SourceName, number>()) {
  const over = new AbortController();
  const checks: number[] = [];
  const check = async () => {
    checks.push(performance.now());
    return { holes: [], places: [], reported, messages: 0, lastSeq: 0 };
  };
  const recordFact = async () => {};
  const watch = new DamageWatch({
    workspace: "acme",
    check,
    epoch: "abc123",
    recordFact,
    everyMs,
    logger: silentLogger,
    signal: over.signal,
  });
  const end = async () => {
    over.abort();
    await watch[Symbol.asyncDispose]();
  };
  return { watch, checks, [Symbol.asyncDispose]: end };
}

it("a log is checked again and again", async () => {
  await using watched = watchEvery(10);
  await until(() => watched.checks.length >= 3, { message: "three checks" });
});

it("a log that is checked every 30 days is not checked at once again", async () => {
  await using watched = watchEvery(30 * dayMs);
  await until(() => watched.checks.length > 0, { message: "the first check" });
  // Node's own timer of more than 24.8 days fires after a millisecond.
  await delay(200);
  expect(watched.checks).toHaveLength(1);
});

it("a warning names the sources that have lost most, and counts the others", async () => {
  const sources = Array.from({ length: 5_000 }, (_, index) =>
    sourceName({ workspace: "default", developer: `d${index}`, project: "shop", upstream: "skaffold" }),
  );
  await using watched = watchEvery(30 * dayMs, new Map(sources.map((source, index) => [source, index + 1])));
  await until(() => watched.watch.warning, { message: "the warning" });
  expect(watched.watch.warning).toContain("(default/d4999/shop/skaffold 5000, default/d4998/shop/skaffold 4999, ");
  expect(watched.watch.warning).toContain("default/d4990/shop/skaffold 4991 and 4990 more)");
});
