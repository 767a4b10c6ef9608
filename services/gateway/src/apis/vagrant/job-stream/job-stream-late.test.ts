import { Job_State } from "@tapedeck/proto/vagrant/vagrant";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type JobHarness, jobFacts, jobHarness, started } from "../testing/job-harness.ts";
import { short } from "../testing/open-job.ts";
import type { Fields } from "../testing/vagrant-harness.ts";
import { jobStream } from "./job-stream.ts";

// Output that was recorded long after its job's end: a client that reads the whole job must not miss it.

let on: JobHarness;
beforeEach(async () => {
  on = await jobHarness();
  on.session("01A");
});
afterEach(() => on[Symbol.asyncDispose]());

const { QUEUED, RUNNING, SUCCESS } = Job_State;
const id = "job-1";
const elsewhere = jobFacts("job-2", "01A").is("job.queued", QUEUED);

function scenario() {
  const job = jobFacts(id, "01A");
  const inTime = [
    started("01A"),
    job.is("job.queued", QUEUED),
    job.is("job.started", RUNNING),
    job.writes("one"),
    job.is("job.succeeded", SUCCESS),
  ];
  return { inTime, late: [elsewhere, job.writes("two"), job.isWhole()] };
}

/** The job's stream, when what stands behind `seq` was recorded a quarter of an hour later. */
async function readPausedAfter(seq: number): Promise<string[]> {
  const log = on.deps.log();
  async function* history(...args: Parameters<LogReader["history"]>): AsyncGenerator<RecordedEvent, void> {
    for await (const recorded of log.history(...args)) {
      const later = new Date(recorded.recordedAt.getTime() + 900_000);
      yield recorded.offset <= offsetOf(seq) ? recorded : { ...recorded, recordedAt: later };
    }
  }
  const deps = { ...on.deps, log: () => ({ ...log, history }) };
  const got: string[] = [];
  for await (const message of (await jobStream(deps, { job_id: id }, on.context())).messages) got.push(short(message));
  return got;
}

const whole = ["open", "UNKNOWN>SUCCESS", "buffered one two", "complete"];

it("is sent where the connection or its recorder was away", async () => {
  const { inTime, late } = scenario();
  // Without times of their own: each is seen when it is recorded.
  const timeless = (fields: Fields): Fields => ({ ...fields, observed_at: undefined });
  const seq = await on.add(...inTime.map(timeless));
  const restored = { kind: "upstream.restored", channel: "tapedeck", session: "01A" };
  await on.add(restored, ...late.map(timeless));
  expect(await readPausedAfter(seq)).toEqual(whole);
});

it("is sent where the log was away, and what was seen waited for it", async () => {
  const { inTime, late } = scenario();
  const seen = (fields: Fields): Fields => ({ ...fields, observed_at: { seconds: 1_000n, nanos: 0 } });
  const seq = await on.add(...inTime.map(seen));
  await on.add(...late.map(seen));
  expect(await readPausedAfter(seq)).toEqual(whole);
});

it("is sent where other jobs have said something meanwhile", async () => {
  const { inTime, late } = scenario();
  const timeless = (fields: Fields): Fields => ({ ...fields, observed_at: undefined });
  const seq = await on.add(...inTime.map(timeless));
  await on.add(...late.map(timeless));
  expect(await readPausedAfter(seq)).toEqual(whole);
});
