import type { SourceName } from "@tapedeck/shared/source";
import { expect, it } from "vitest";
import type { ObservationOutcome, Observing } from "../../normalize/inventory/observing.ts";
import { type FakeLog, fakeLog } from "../testing/fake-log.ts";
import { plainNormalizer } from "../testing/plain-normalizer.ts";
import { pollingTap } from "../testing/polling-tap.ts";

// A gap is an event of Tapedeck's own, so that no watcher remembers it: recording must.

const source = "default/h1/host/rkt" as SourceName;

/** An observation is words: "cut:7" means that the output of a job may be cut there, "away" that nobody polled. */
const words: Observing = {
  channels: ["pods"],
  mask: (_, bytes) => ({ bytes, redacted: 0 }),
  watch() {
    return {
      resume() {},
      connected() {},
      observe(_, { result }, at) {
        const reported = result?.$case === "all" ? Buffer.from(result.value).toString().split(" ") : [];
        return reported.flatMap((word): ObservationOutcome[] => {
          if (word === "away") return [{ what: "gap", reason: word, after: undefined, until: at }];
          const [, index] = word.split(":");
          if (index === undefined) {
            return [{ what: "frame", facts: [{ kind: "pod.changed", summary: word }], observedAt: at }];
          }
          const output = { job: "J1", index: BigInt(index) };
          return [{ what: "gap", reason: "it may be cut", after: undefined, until: at, output }];
        });
      },
    };
  },
};

const options = { source, normalizer: { ...plainNormalizer(), channels: [], observing: words } };
const gaps = (log: FakeLog) =>
  log.recorded().flatMap(({ event: { detail } }) => {
    if (detail?.$case !== "gap") return [];
    return [detail.value.output === undefined ? detail.value.reason : `cut at ${detail.value.output.index}`];
  });

it("an observation that is pushed again after a crash records no gap again that got into the log", async () => {
  const log = fakeLog(() => ({ lands: "now", answers: true }));
  await using tap = pollingTap(log, options);
  await tap.dial(1_000, "C1", "h1");
  await tap.observation(1_010, "C1", "pods", "a");
  await tap.observation(1_020, "C1", "pods", "away cut:7");
  await tap.settled();
  await tap.crash(4);
  await tap.observation(1_030, "C1", "pods", "away cut:9");
  await tap.settled();
  expect(gaps(log)).toEqual(["away", "cut at 7", "away", "cut at 9"]);
});

it("that output may be cut at a place is recorded once, by whatever recorder", async () => {
  const log = fakeLog(() => ({ lands: "now", answers: true }));
  await using tap = pollingTap(log, options);
  await tap.dial(1_000, "C1", "h1");
  await tap.observation(1_010, "C1", "pods", "a cut:7");
  await tap.settled();
  await tap.crash();
  await tap.observation(1_020, "C1", "pods", "cut:7");
  await tap.settled();
  expect(gaps(log)).toEqual(["cut at 7"]);
});
