import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { describe, expect, it } from "vitest";
import { anotherSession, fact, frame } from "../../inventory/testing/outcome-fields.ts";
import { job, outputGap, play, resumed } from "../testing/jobs-play.ts";

const running = { state: "RUNNING", command: "up", assigned: 1_000, acked: 1_000 } as const;
const success = { ...running, state: "SUCCESS", completed: 2_000, result: { run: { run_result: true } } } as const;
const notFound = 5;

describe("another server", () => {
  const before = () => {
    const harness = play();
    harness.list(1_000, job("01A", success), job("01B", success), job("01C", running), job("01D", { state: "QUEUED" }));
    return harness;
  };

  it("is one that does not list the newest job that was over", () => {
    const harness = before();
    harness.watcher.connected();
    expect(harness.list(2_000, job("01A", success), job("01D", { state: "QUEUED" }))).toEqual([
      outputGap({ job: "01A", index: 0n }),
      outputGap({ job: "01B", index: 0n }),
      outputGap({ job: "01C", index: 0n }),
      frame(
        fact("job.lost", "01C", { outcome: Outcome.OUTCOME_UNKNOWN }),
        fact("command.finished", "01C", { inferred: true, outcome: Outcome.OUTCOME_UNKNOWN, command: "up" }),
      ),
      anotherSession,
    ]);
  });

  it("is none without a new connection, or with that job", () => {
    const harness = before();
    expect(harness.list(2_000, job("01C", running), job("01D", { state: "QUEUED" }))).toEqual([
      outputGap({ job: "01A", index: 0n }),
      outputGap({ job: "01B", index: 0n }),
    ]);
    const other = before();
    other.watcher.connected();
    expect(other.list(2_000, job("01B", success), job("01C", running), job("01D", { state: "QUEUED" }))).toEqual([
      outputGap({ job: "01A", index: 0n }),
    ]);
    expect(other.list(3_000, job("01C", running), job("01D", { state: "QUEUED" }))).toEqual([
      outputGap({ job: "01B", index: 0n }),
    ]);
  });

  it("may have been preceded by jobs that nobody could list, which is a gap", () => {
    const failed = { $case: "failed", value: { code: 5, message: "record not found" } } as const;
    const harness = before();
    expect(harness.observation(1_500, failed)).toEqual([]);
    harness.watcher.connected();
    // It is not known yet which server this one is.
    expect(harness.observation(1_900, { ...failed, value: { code: 5, message: "of the other one" } })).toEqual([]);
    harness.list(2_000);
    expect(harness.record.filter(({ what }) => what === "gap")[0]).toEqual({
      what: "gap",
      reason: "the jobs could not be listed: record not found",
      after: timestampOfMs(1_000),
      until: timestampOfMs(2_000),
    });
    const listed = before();
    listed.observation(1_500, failed);
    listed.list(1_600, job("01A", success), job("01B", success), job("01C", running), job("01D", { state: "QUEUED" }));
    listed.watcher.connected();
    listed.observation(1_900, failed);
    listed.list(2_000);
    expect(listed.record.filter((seen) => seen.what === "gap" && seen.output === undefined)).toEqual([]);
  });

  it("may be another one although its list is as before, so what could not be listed stays a gap", () => {
    const harness = before();
    harness.observation(1_500, { $case: "failed", value: { code: 5, message: "record not found" } });
    harness.watcher.connected();
    expect(harness.observation(1_900, { $case: "same", value: true })).toEqual([]);
    harness.list(2_000);
    expect(harness.record.filter(({ what }) => what === "gap")[0]).toMatchObject({
      reason: "the jobs could not be listed: record not found",
      after: timestampOfMs(1_000),
    });
  });

  it("is known by who was resumed from the log, too", () => {
    const after = resumed(before());
    expect(after.observation(2_000, { $case: "same", value: true })).toEqual([]);
    expect(after.list(2_000)).toEqual([
      outputGap({ job: "01A", index: 0n }),
      outputGap({ job: "01B", index: 0n }),
      outputGap({ job: "01C", index: 0n }),
      frame(
        fact("job.lost", "01C", { outcome: Outcome.OUTCOME_UNKNOWN }),
        fact("command.finished", "01C", { inferred: true, outcome: Outcome.OUTCOME_UNKNOWN, command: "up" }),
      ),
      frame(fact("job.lost", "01D", { outcome: Outcome.OUTCOME_UNKNOWN })),
      anotherSession,
    ]);
  });

  it("says that it does not know that job, where it has no list", () => {
    const harness = before();
    expect(harness.one(2_000, "01B", notFound)).toEqual([]);
    harness.watcher.connected();
    expect(harness.one(2_000, "01A", notFound)).toEqual([]);
    expect(harness.one(2_000, "01B", notFound, "failed to locate job (record not found)")).toEqual([]);
    expect(harness.one(2_000, "01B", notFound).slice(-2)).toEqual([
      frame(fact("job.lost", "01D", { outcome: Outcome.OUTCOME_UNKNOWN })),
      anotherSession,
    ]);
  });

  it("is the same where that job is answered", () => {
    const harness = before();
    harness.watcher.connected();
    expect(harness.one(2_000, "01B", job("01B", success))).toEqual([]);
    expect(harness.list(3_000, job("01C", running))).not.toContainEqual(anotherSession);
  });

  it("can't be known where nothing was over", () => {
    const harness = play();
    harness.list(1_000, job("a", { state: "QUEUED" }));
    harness.watcher.connected();
    expect(harness.list(2_000, job("b", { state: "QUEUED" }))).toEqual([
      frame(fact("job.queued", "b")),
      frame(fact("job.lost", "a", { outcome: Outcome.OUTCOME_UNKNOWN })),
    ]);
  });
});
