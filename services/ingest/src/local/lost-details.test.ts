import { expect, it } from "vitest";
import { skaffoldSource } from "../testing/ingest-harness.ts";
import { lostDetails } from "./lost-details.ts";

it("names the sources that were seen last and are silent, and since when, but not endlessly many", () => {
  const since = { seconds: 1_795_343_645n, nanos: 0 };
  expect(lostDetails(new Map())).toEqual({});
  expect(lostDetails(new Map([[skaffoldSource("alice"), since]]))).toEqual({
    lostSources: 1,
    lost: { "default/alice/shop/skaffold": "last seen 2026-11-22T10:34:05Z" },
  });
  const many = Array.from(
    { length: 50 },
    (_, i) => [skaffoldSource(`dev-${i}`), { ...since, seconds: since.seconds + BigInt(i % 40) }] as const,
  );
  const { lostSources, lost } = lostDetails(new Map(many));
  expect([lostSources, Object.keys(lost ?? {}).length]).toEqual([50, 20]);
  expect(lost, "the one that was lost last").toHaveProperty([skaffoldSource("dev-39")]);
  expect(lost).not.toHaveProperty([skaffoldSource("dev-0")]);
});
