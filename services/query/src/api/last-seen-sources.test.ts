import { type DeepPartial, Heard } from "@tapedeck/proto/tapedeck/v1/heard";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { expect, it } from "vitest";
import { LastSeenSources } from "./last-seen-sources.ts";

const source = "default/alice/host/rkt";
const at = timestampOfMs;

/** `reports` receives what ingest reports; ages are in ms. */
function stage() {
  const clock = { now: 1_000_000 };
  const lastSeen = new LastSeenSources(() => clock.now);
  return {
    clock,
    lastSeen: () => lastSeen.of(source),
    reports: (collections: NonNullable<DeepPartial<Heard>["collections"]>) =>
      lastSeen.receive(Heard.encode(Heard.fromPartial({ source, collections })).finish()),
  };
}

const pods = { heard_at: at(5_000), age_ms: 200n };
const images = { heard_at: at(6_000), age_ms: 100n };

it("a late list is not heard since the last one, from the report on", () => {
  const { lastSeen, reports } = stage();
  reports({ pods, images });
  expect(lastSeen()).toMatchObject({ heardAt: { pods: at(5_000), images: at(6_000) }, notHeardSince: undefined });
  reports({ pods: { ...pods, late: true }, images });
  expect(lastSeen()).toMatchObject({ notHeardSince: at(5_000) });
  reports({ pods: { heard_at: at(9_000), age_ms: 0n }, images });
  expect(lastSeen()?.notHeardSince).toBeUndefined();
});

it("a source that ingest reports no more is not heard since the list that was heard longest ago", () => {
  const { clock, lastSeen, reports } = stage();
  reports({ pods, images });
  clock.now += 14_999;
  expect(lastSeen()?.notHeardSince).toBeUndefined();
  clock.now += 1;
  expect(lastSeen()).toMatchObject({ notHeardSince: at(5_000) });
});

it("a list that an ingest has not got since it started is as old as the one before heard it", () => {
  const { clock, lastSeen, reports } = stage();
  reports({ pods, images });
  clock.now += 3_000;
  // Images are listed while ListPods waits for a pod that is starting.
  const imagesAgain = { heard_at: at(9_000), age_ms: 0n };
  reports({ images: imagesAgain });
  expect(lastSeen()).toMatchObject({ heardAt: { pods: at(5_000), images: at(9_000) }, notHeardSince: undefined });
  reports({ images: imagesAgain, pods: { late: true } });
  expect(lastSeen()).toMatchObject({ heardAt: { pods: at(5_000) }, notHeardSince: at(5_000) });
  reports({ images: imagesAgain, pods: { heard_at: at(9_500), age_ms: 0n } });
  expect(lastSeen()).toMatchObject({ heardAt: { pods: at(9_500) }, notHeardSince: undefined });
});

it("a list that no report names is not heard after a while, and forgotten after an hour", () => {
  const { clock, lastSeen, reports } = stage();
  reports({ pods, images });
  for (let seconds = 0; seconds < 15; seconds += 5) {
    clock.now += 5_000;
    reports({ images });
  }
  expect(lastSeen()).toMatchObject({ heardAt: { pods: at(5_000) }, notHeardSince: at(5_000) });
  clock.now += 3_600_000;
  reports({ images });
  expect(lastSeen()).toMatchObject({ heardAt: { images: at(6_000) }, notHeardSince: undefined });
  expect(lastSeen()?.heardAt).not.toHaveProperty("pods");
});

it.each([-3_600_000, 0, 3_600_000])("the age of a source does not depend on a tap's clock that is %i ms off", (off) => {
  const { clock, lastSeen, reports } = stage();
  const heard_at = at(Date.now() + off);
  reports({ pods: { heard_at, age_ms: 700n }, images: { heard_at, age_ms: 200n } });
  clock.now += 300;
  expect(lastSeen()?.ageMs).toBe(1_000);
});
