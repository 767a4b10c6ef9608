import { KnownJobs, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { GetJobStreamResponse, Job, ListJobsResponse } from "@tapedeck/proto/vagrant/vagrant";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { describe, expect, it } from "vitest";
import { outcomesOf } from "../../inventory/observing.ts";
import { described, fact, frame, unreadable } from "../../inventory/testing/outcome-fields.ts";
import {
  comparedJobs,
  eventsOf,
  factsOf,
  type JobFields,
  job,
  lines,
  outputGap,
  type Play,
  play,
  resumed,
  startedFacts,
  succeededFacts,
  unmasked,
  written,
} from "../testing/jobs-play.ts";
import { JobsWatcher } from "./jobs-watcher.ts";

const running = { state: "RUNNING", command: "up", assigned: 1_000, acked: 1_000 } as const;
const success = { ...running, state: "SUCCESS", completed: 2_000, result: { run: { run_result: true } } } as const;
const notFound = 5;

describe("a list of jobs", () => {
  it("emits each job as the server encoded it", () => {
    const harness = play();
    // A field that is not known here, and fields in another order than ours.
    const bytes = Buffer.concat([
      Buffer.from([0xa0, 0x06, 0x01]),
      Job.encode(job("j", running)).finish(),
      Buffer.from([0xf8, 0x3f, 0x05]),
    ]);
    const list = Buffer.concat([Buffer.from([0x0a, ...varint(bytes.length)]), bytes]);
    harness.observation(1_000, { $case: "all", value: list });
    const [seen] = harness.record;
    expect(seen?.what === "frame" && seen.original).toEqual({ type: "hashicorp.vagrant.Job", bytes, redacted: 0 });
    expect(comparedJobs(harness.record)).toEqual([frame(...startedFacts("j"))]);
  });

  it("emits nothing when it is the same, or failed", () => {
    const harness = play();
    harness.list(1_000, job("j", running));
    expect(harness.list(2_000, job("j", running))).toEqual([]);
    expect(harness.observation(3_000, { $case: "same", value: true })).toEqual([]);
    expect(harness.observation(4_000, { $case: "failed", value: { code: 5, message: "no" } })).toEqual([]);
    expect(harness.list(5_000, job("j", success))).toEqual([frame(...succeededFacts("j"))]);
  });

  it("without a job that was not over emits that it is lost", () => {
    const harness = play();
    harness.list(1_000, job("a", running), job("b", { state: "QUEUED" }), job("c", success));
    expect(harness.list(2_000, job("c", success))).toEqual([
      outputGap({ job: "a", index: 0n }),
      frame(
        fact("job.lost", "a", { outcome: Outcome.OUTCOME_UNKNOWN }),
        fact("command.finished", "a", { inferred: true, outcome: Outcome.OUTCOME_UNKNOWN, command: "up" }),
      ),
      frame(fact("job.lost", "b", { outcome: Outcome.OUTCOME_UNKNOWN })),
    ]);
    expect(harness.list(3_000, job("c", success))).toEqual([]);
    const [lost, command] = factsOf(harness.record).slice(-3);
    expect(lost).toMatchObject({ subject: "a", outcome: 4, detail: { value: { state: "RUNNING", command: "up" } } });
    expect(lost?.summary).toBe("up (job a) was lost: the server no longer lists it");
    expect(command).toMatchObject({ kind: "command.finished", outcome: 4, inferred: true });
    const lostFrame = harness.record.find((seen) => seen.what === "frame" && seen.facts[0] === lost);
    expect(lostFrame).not.toHaveProperty("original");
  });

  it("emits a lost job as it was answered last, not as an older answer has it", () => {
    const harness = play({ describeEvery: 3 });
    harness.list(1_000, job("a", { state: "WAITING", command: "up", assigned: 900 }));
    harness.list(2_000, job("a", { state: "QUEUED", command: "halt" }));
    expect(harness.list(3_000)).toEqual([
      frame(fact("job.lost", "a", { outcome: Outcome.OUTCOME_UNKNOWN })),
      described,
    ]);
    expect(factsOf(harness.record)[2]?.detail?.value).toMatchObject({ state: "WAITING", command: "up" });
    // A watcher that knows the job from a description alone knows its state.
    const other = play({ describeEvery: 2 });
    other.list(1_000, job("a", { state: "WAITING", assigned: 900 }));
    const after = resumed({ ...other, record: other.record.slice(-1) });
    expect(after.list(2_000)).toEqual([frame(fact("job.lost", "a", { outcome: Outcome.OUTCOME_UNKNOWN }))]);
    expect(factsOf(after.record)[0]?.detail?.value).toMatchObject({ state: "WAITING", operation: "" });
  });

  it("without a finished one emits nothing: servers forget them, and so does a watcher", () => {
    const harness = play({ describeEvery: 1 });
    harness.list(1_000, job("a", success));
    const stream = harness.stream("a");
    stream.state(1_100, job("a", success));
    stream.complete(1_200);
    expect(harness.list(2_000, job("b", success))).toEqual([
      frame(...startedFacts("b"), ...succeededFacts("b")),
      described,
    ]);
    expect(knownOf(harness)).toEqual(["b"]);
  });

  it("goes on with a job that was refused an answer", () => {
    const harness = play();
    harness.list(1_000, job("a", running));
    expect(harness.one(2_000, "a", 14, "away")).toEqual([]);
    expect(harness.one(2_000, "a", job("a", { ...running, canceled: 1_500 }))).toEqual([
      frame(fact("job.cancel_requested", "a")),
    ]);
    expect(harness.one(3_000, "a", notFound, "failed to locate job (record not found)")).toEqual([
      outputGap({ job: "a", index: 0n }),
      frame(
        fact("job.lost", "a", { outcome: Outcome.OUTCOME_UNKNOWN }),
        fact("command.finished", "a", { inferred: true, outcome: Outcome.OUTCOME_UNKNOWN, command: "up" }),
      ),
    ]);
    expect(harness.one(4_000, "a", notFound)).toEqual([]);
    expect(harness.one(4_000, "nobody knows it", notFound)).toEqual([]);
    expect(harness.one(5_000, "new", job("new", running))).toEqual([frame(...startedFacts("new"))]);
  });

  it.each<[string, JobFields[], string[]]>([
    ["nothing was over since", [running], ["0"]],
    ["all that is over was over before anything was done for it", [{ ...success, completed: 900 }, running], []],
    [
      "something was over before, and others were done after that",
      [{ ...success, completed: 1_500 }, running, { ...running, acked: 1_600 }],
      ["1"],
    ],
    [
      "it was queued just now",
      [
        { state: "QUEUED", queued: 95_000 },
        { state: "QUEUED", queued: 80_000 },
      ],
      ["1"],
    ],
    ["it is over", [success], []],
    ["nobody knows when", [{ state: "QUEUED", queued: undefined }], []],
  ])("that is the first of a session emits which jobs are stale: %s", (_, observations, stale) => {
    const harness = play();
    const jobs = observations.map((observation, index) => job(String(index), observation));
    harness.list(100_000, ...jobs);
    const marked = factsOf(harness.record).filter(({ detail }) => detail?.$case === "job" && detail.value.stale);
    expect([...new Set(marked.map(({ subject }) => subject))]).toEqual(stale);
  });

  it("marks a stale job in all that it emits of it, whoever goes on", () => {
    const harness = play();
    harness.list(100_000, job("z", running));
    const lost = { ...running, state: "ERROR", canceled: 120_000, error: { code: 1 } } as const;
    const removed = resumed(harness);
    removed.list(111_000, job("z", running));
    removed.list(112_000);
    expect(factsOf(removed.record)[0]).toMatchObject({ kind: "job.lost", detail: { value: { stale: true } } });
    const after = resumed(harness);
    after.list(121_000, job("z", lost), job("y", running));
    expect(
      factsOf(after.record).map(({ subject, detail }) => [subject, detail?.$case === "job" && detail.value.stale]),
    ).toEqual([["z", true], ["z", false], ...Array(3).fill(["y", false]), ["y", false]]);
  });
});

describe("bytes that can't be read", () => {
  it("is emitted once of each of many jobs without an id", () => {
    const harness = play();
    const jobs = [job("", { state: "QUEUED" }), job("", running)];
    expect(harness.list(1_000, ...jobs)).toEqual([unreadable, unreadable]);
    expect(harness.list(2_000, ...jobs)).toEqual([]);
  });

  it("is emitted once: a list, a job, a message of a stream", () => {
    const harness = play();
    const broken = Buffer.from([0xff]);
    expect(harness.observation(1_000, { $case: "all", value: broken })).toEqual([unreadable]);
    expect(harness.observation(2_000, { $case: "all", value: broken })).toEqual([]);
    const list = Buffer.concat([
      Buffer.from([0x0a, 6, 0x0a, 1, 0x6a, 0x1a, 1, 0xff]),
      ListJobsResponse.encode({ jobs: [job("k", running)] }).finish(),
    ]);
    expect(harness.observation(3_000, { $case: "all", value: list })).toEqual([
      unreadable,
      frame(...startedFacts("k")),
    ]);
    expect(harness.observation(4_000, { $case: "all", value: list })).toEqual([]);
    expect(harness.list(5_000, job("j", running), job("k", running))).toEqual([frame(...startedFacts("j"))]);
    expect(harness.list(5_000, job("", running), job("k", running), job("j", running))).toEqual([unreadable]);
    expect(harness.stream("k").bytes(6_000, broken)).toEqual([unreadable]);
    // Nothing else is recorded about a job that was recorded as unreadable.
    expect(harness.stream("").prints(6_000, lines(0, 2))).toEqual([]);
    expect(
      harness.record.flatMap((seen) =>
        seen.what === "frame" && seen.facts[0].kind === "upstream.unreadable" ? seen.original?.type : [],
      ),
    ).toEqual([
      "hashicorp.vagrant.ListJobsResponse",
      "hashicorp.vagrant.Job",
      "hashicorp.vagrant.Job",
      "hashicorp.vagrant.GetJobStreamResponse",
    ]);
  });

  it("is not emitted again by the observation from which a stopped recorder has recorded it", () => {
    const harness = play();
    const broken = Buffer.from([0xff]);
    const stream = harness.stream("k");
    stream.bytes(1_000, broken);
    const after = resumed(harness).stream("k", stream.id);
    expect(after.bytes(1_000, broken)).toEqual([]);
    expect(after.bytes(1_000, broken)).toEqual([unreadable]);
    expect(after.bytes(2_000, broken)).toEqual([unreadable]);
  });

  it("is kept where it is of an unknown kind", () => {
    const harness = play();
    const bytes = Buffer.from([0x9a, 0x06, 0x01, 0x61]);
    const stream = harness.stream("k");
    expect(stream.bytes(1_000, bytes)).toEqual([frame(fact("mirror.received", "k", { what: "unknown" }))]);
    expect(
      stream.reports(2_000, { $case: "error", value: { error: { code: 3, message: "no", details: [] } } }),
    ).toEqual([frame(fact("mirror.received", "k", { what: "error" }))]);
    const [seen] = harness.record;
    expect(seen).toMatchObject({
      original: { type: "hashicorp.vagrant.GetJobStreamResponse", bytes },
      facts: [{ kind: "mirror.received", subject: "k" }],
    });
    expect(resumed(harness).stream("k", stream.id).bytes(2_000, bytes)).toEqual([]);
  });
});

describe("a stream's states", () => {
  it("emit what the lists have not, with the job as it came", () => {
    const harness = play();
    harness.list(1_000, job("j", { state: "QUEUED", command: "up" }));
    const stream = harness.stream("j");
    expect(stream.reports(1_100, { $case: "open", value: {} })).toEqual([]);
    expect(stream.state(1_200, job("j", running))).toEqual([
      frame(
        fact("job.assigned", "j", { attempt: 1 }),
        fact("job.started", "j"),
        fact("command.started", "j", { command: "up" }),
      ),
    ]);
    expect(harness.list(1_300, job("j", { state: "QUEUED", command: "up" }))).toEqual([]);
    const seen = harness.record.at(-1);
    expect(seen?.what === "frame" && seen.original?.bytes).toEqual(Buffer.from(Job.encode(job("j", running)).finish()));
    expect(stream.reports(1_400, { $case: "state", value: { previous: 0, current: 5, canceling: false } })).toEqual([]);
  });

  it("can come in pieces, of which all together are the job", () => {
    const harness = play();
    const bytes = Job.encode(job("j", running)).finish();
    const piece = (part: Uint8Array) => Buffer.from([0x1a, ...varint(part.length), ...part]);
    const state = Buffer.concat([piece(bytes.subarray(0, 3)), Buffer.from([0x20, 1]), piece(bytes.subarray(3))]);
    expect(harness.stream("j").bytes(1_000, Buffer.from([0x12, ...varint(state.length), ...state]))).toEqual([
      frame(...startedFacts("j")),
    ]);
  });
});

describe("the command that runs on a project", () => {
  it("is that of the job that is running, for who was resumed too", () => {
    const harness = play();
    const { watcher } = harness;
    harness.list(
      1_000,
      job("a", { state: "QUEUED", command: "up" }),
      job("i", { ...running, command: undefined }),
      job("o", { ...running, project: "p2" }),
    );
    expect(watcher.runningCommand("p1")).toBeUndefined();
    harness.list(2_000, job("a", running), job("o", { ...running, project: "p2" }));
    expect([watcher.runningCommand("p1"), watcher.runningCommand("p2")]).toEqual(["a", "o"]);
    expect(resumed(harness).watcher.runningCommand("p1")).toBe("a");
    harness.list(3_000, job("a", success));
    expect([watcher.runningCommand("p1"), watcher.runningCommand("p2")]).toEqual([undefined, undefined]);
    expect(resumed(harness).watcher.runningCommand("p1")).toBeUndefined();
  });
});

describe("the description of what is known", () => {
  it("comes after so many events, and who begins with it goes on as if it had seen all", () => {
    const harness = play({ describeEvery: 30 });
    harness.list(1_000, job("a", running), job("b", success), job("c", running));
    const streams = ["a", "b", "c"].map((id) => harness.stream(id));
    const [a, b, c] = streams;
    a?.state(1_001, job("a", running));
    expect(a?.prints(1_002, lines(0, 10))).toEqual(written({ job: "a", index: 0n, next_index: 10n }));
    b?.state(1_003, job("b", success));
    expect(b?.prints(1_004, lines(0, 3), true)).toEqual(written({ job: "b", index: 0n, next_index: 3n }));
    expect(b?.complete(1_005)).toEqual([frame(fact("mirror.received", "b", { what: "complete" }))]);
    expect(c?.prints(1_006, lines(0, 5))).toEqual([...written({ job: "c", index: 0n, next_index: 5n }), described]);
    expect(harness.record.at(-1)).toMatchObject({ original: { type: "tapedeck.v1.KnownJobs", redacted: 0 } });

    const after = play();
    const events = eventsOf(harness.record);
    const description = events.at(-1);
    if (description === undefined) throw new Error("there is none");
    expect(description.detail).toMatchObject({ $case: "host", value: { part: 0, parts: 1, entries: 3 } });
    after.watcher.resume(description);
    after.watcher.connected();
    expect(after.list(2_000, job("a", running), job("b", success), job("c", success))).toEqual([
      frame(...succeededFacts("c")),
    ]);
    expect(after.stream("a").prints(2_001, lines(0, 12), true)).toEqual([
      ...written({ job: "a", index: 10n, next_index: 12n }),
    ]);
    expect(after.stream("b").prints(2_001, lines(0, 12), true)).toEqual([]);
    // It goes on where it was.
    const same = after.stream("c", c?.id);
    expect(same.prints(2_002, lines(0, 7))).toEqual(written({ job: "c", index: 5n, next_index: 7n }));
  });

  it("is in parts where it is large, each for itself complete", () => {
    const harness = play({ describeEvery: 1 });
    const ids = Array.from({ length: 5_000 }, (_, index) => `01M7WSXR6NFM73VJ0F879${10_000 + index}`);
    harness.list(1_000, ...ids.map((id) => job(id, success)));
    const parts = harness.record.filter(
      (seen) => seen.what === "frame" && seen.facts[0].kind === "inventory.described",
    );
    expect(parts.length).toBeGreaterThan(1);
    const sizes = parts.map((seen) => (seen.what === "frame" ? (seen.original?.bytes.length ?? 0) : 0));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(512 * 1024);
    expect(knownOf(harness)).toEqual(ids);
    const after = resumed({ ...harness, record: parts });
    expect(after.list(2_000, ...ids.map((id) => job(id, success)))).toEqual([]);
  });
});

describe("bytes of all kinds", () => {
  it("never make it fail", () => {
    const { watcher } = play();
    const bytes = GetJobStreamResponse.encode({
      event: { $case: "terminal", value: { events: [...lines(0, 3)], buffered: true } },
    }).finish();
    for (let at = 0; at < bytes.length; at++) {
      for (const byte of [0, 0x7f, 0xff]) {
        const changed = Buffer.from(bytes);
        changed[at] = byte;
        const value = { job: "j", bytes: changed, stream: "s", before: BigInt(at) };
        const observation = { result: { $case: "streamed", value } } as const;
        expect(() => [...watcher.observe("jobs", observation, timestampOfMs(at))]).not.toThrow();
      }
    }
  });

  it("are emitted as they are masked", () => {
    const mask = (type: string, bytes: Uint8Array) => {
      const masked = Buffer.from(bytes);
      const at = masked.lastIndexOf("shop");
      return { bytes: at < 0 ? masked : masked.fill(0x2a, at, at + 4), redacted: type.length };
    };
    const watcher = new JobsWatcher({ mask, settings: {} });
    const list = ListJobsResponse.encode({ jobs: [job("j", { state: "QUEUED" })] }).finish();
    const [seen] = outcomesOf(
      watcher.observe("jobs", { result: { $case: "all", value: Buffer.from(list) } }, timestampOfMs(1)),
    );
    const detail = { value: { scope_name: "****" } };
    expect(seen).toMatchObject({ original: { redacted: "hashicorp.vagrant.Job".length }, facts: [{ detail }] });
    expect(seen?.what === "frame" && Job.decode(seen.original?.bytes ?? list).scope?.value.name).toBe("****");
  });

  it("are not masked before somebody wants to know what they say", () => {
    let masked = 0;
    const mask = (_: string, bytes: Uint8Array) => {
      masked += 1;
      return { bytes, redacted: 0 };
    };
    const watcher = new JobsWatcher({ mask, settings: {} });
    const jobs = ["j1", "j2", "j3"].map((id) => job(id, { state: "QUEUED" }));
    const value = Buffer.from(ListJobsResponse.encode({ jobs }).finish());
    const reported = watcher.observe("jobs", { result: { $case: "all", value } }, timestampOfMs(1));
    const before = Array.from(reported, ({ what }) => (what === "yield" ? [] : [masked])).flat();
    expect(before).toEqual([1, 2, 3]);
  });

  it("are read with a pause at each, also where nothing is emitted", () => {
    const watcher = new JobsWatcher({ mask: unmasked, settings: {} });
    const jobs = Array.from({ length: 500 }, (_, n) => job(`j${n}`, { state: "QUEUED" }));
    const value = Buffer.from(ListJobsResponse.encode({ jobs }).finish());
    outcomesOf(watcher.observe("jobs", { result: { $case: "all", value } }, timestampOfMs(1)));
    const again = [...watcher.observe("jobs", { result: { $case: "all", value } }, timestampOfMs(2))];
    expect(again.filter(({ what }) => what === "yield").length).toBeGreaterThanOrEqual(500);
    expect(again.filter(({ what }) => what !== "yield")).toEqual([]);
  });
});

function knownOf({ record }: Play): readonly string[] {
  const frames = record.filter((seen) => seen.what === "frame" && seen.facts[0].kind === "inventory.described");
  const last = frames.findLastIndex((seen) => {
    const detail = seen.what === "frame" ? seen.facts[0].detail : undefined;
    return detail?.$case === "host" && detail.value.part === 0;
  });
  return frames.slice(last).flatMap((seen) => {
    if (seen.what !== "frame") return [];
    return KnownJobs.decode(seen.original?.bytes ?? Buffer.alloc(0)).jobs.map((known) => known.job);
  });
}

function varint(length: number): number[] {
  return length < 128 ? [length] : [(length & 0x7f) | 0x80, length >> 7];
}
