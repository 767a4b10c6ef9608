import { Job_State } from "@tapedeck/proto/vagrant/vagrant";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ended, type JobHarness, jobFacts, jobHarness, started } from "../testing/job-harness.ts";
import { short } from "../testing/open-job.ts";
import { fewer } from "./job-past.ts";
import { jobStream } from "./job-stream.ts";

let on: JobHarness;
beforeEach(async () => {
  on = await jobHarness();
  on.session("01A");
});
afterEach(() => on[Symbol.asyncDispose]());

const { QUEUED, RUNNING, SUCCESS } = Job_State;
const id = "job-1";

/** What the job's stream says, and how many messages of the log were read for it. */
async function readAll() {
  const log = on.deps.log();
  let read = 0;
  async function* history(...args: Parameters<LogReader["history"]>): AsyncGenerator<RecordedEvent, void> {
    for await (const recorded of log.history(...args)) {
      read += 1;
      yield recorded;
    }
  }
  const deps = { ...on.deps, log: () => ({ ...log, history }) };
  const got: string[] = [];
  for await (const message of (await jobStream(deps, { job_id: id }, on.context())).messages) got.push(short(message));
  return { got, read };
}

describe("a job beside another one that prints much", () => {
  const job = jobFacts(id, "01A");
  const other = jobFacts("job-2", "01A");
  const much = async () => {
    for (let n = 0; n < 4; n += 1) await on.add(...Array.from({ length: 500 }, () => other.writes("noise")));
  };

  beforeEach(async () => {
    await on.add(started("01A"), job.is("job.queued", QUEUED), other.is("job.queued", QUEUED));
    await on.add(job.is("job.started", RUNNING), job.writes("one", 0));
    await much();
    await on.add(job.writes("two", 1), other.writes("noise"), job.writes("three", 2));
    await much();
    await on.add(job.is("job.succeeded", SUCCESS), job.isWhole(), ended("01A"));
  });

  const whole = ["open", "UNKNOWN>SUCCESS", "buffered one two three", "complete"];

  it("is answered from its own events, at the cost of those alone", async () => {
    const { got, read } = await readAll();
    expect(got).toEqual(whole);
    // Its seven, and the end of the session.
    expect(read).toBe(8);
  });

  it("is answered in whole also while query does not know where its events stand", async () => {
    on.forgetSpans();
    const { got, read } = await readAll();
    expect(got).toEqual(whole);
    expect(read).toBeGreaterThan(4_000);
  });
});

describe("many spans", () => {
  const spanOf = (first: number, last: number) => ({ first: offsetOf(first), last: offsetOf(last) });
  const spans = Array.from({ length: 10 }, (_, index) => spanOf(10 * index, 10 * index + 3));

  it.each([
    [10, spans],
    [100, spans],
    [4, [spanOf(0, 23), spanOf(30, 53), spanOf(60, 83), spanOf(90, 93)]],
    [1, [spanOf(0, 93)]],
  ])("become at most %i, which hold them all", (max, expected) => {
    expect(fewer(spans, max)).toEqual(expected);
  });

  it("may be none", () => {
    expect(fewer([], 4)).toEqual([]);
  });
});
