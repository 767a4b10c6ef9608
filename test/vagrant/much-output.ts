import { line } from "@tapedeck/fakes/vagrant/client";
import { commandResult, setUpShop } from "@tapedeck/fakes/vagrant/shop";
import { Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { expect } from "vitest";
import { largestBatch, outputOf } from "./output.ts";
import { startVagrantStack } from "./stack.ts";

/** The server keeps at most 5,248 for a slower reader. */
const step = 2_000;

/** A job with 100,000 pieces is a minute's work on a quiet machine. */
const deadlineMs = 500_000;

/**
 * Checks that a job with so many pieces of output is recorded and served whole, in order: to a live reader, and
 * afterwards.
 */
export async function muchOutputIsWhole(count: number): Promise<void> {
  await using on = await startVagrantStack();
  const { fake } = on;
  const job = setUpShop(fake).run();
  await on.waitForState(job, Job_State.RUNNING);
  await until(() => fake.streams() > 0, { message: "the tap to follow the job" });
  // On a busy machine the tables may be too far behind for an answer, and what is written before the answer begins is part of it.
  await on.stack.caughtUp();
  const live = on.client.job(job);
  await until(() => live.messages.length > 0, { message: "the live reader's answer to begin" });
  const isRead = () => fake.fullStreams() === 0;
  for (let from = 0; from < count; from += step) {
    await until(isRead, { message: `what was written before ${from} to be read`, deadlineMs });
    // When the job ends, a live reader waits for the tables no longer than any caller.
    await on.stack.caughtUp();
    fake.jobs.write(
      job,
      Array.from({ length: step }, (_, index) => line(String(from + index))),
    );
  }
  await until(isRead, { message: "all to be read", deadlineMs });
  fake.jobs.complete(job, commandResult({ run_result: true }));
  await on.waitForState(job, Job_State.SUCCESS, deadlineMs);
  await on.stack.caughtUp();
  const late = on.client.job(job);
  for (const reader of [live, late]) {
    expect(await reader.end).toEqual({ code: 0, details: "OK" });
    expect(largestBatch(reader.messages)).toBeLessThanOrEqual(64);
    const numbers = outputOf(reader.messages).map(({ event }) =>
      event?.$case === "line" ? Number(event.value.msg) : -1,
    );
    expect(numbers).toHaveLength(count);
    expect(numbers.findIndex((number, index) => number !== index)).toBe(-1);
  }
  const events = await on.eventsOf("jobs");
  expect(events.filter(({ kind }) => kind === "terminal.written")).toHaveLength(count);
  expect((await on.eventsOf("tapedeck")).filter(({ kind }) => kind === "session.gap")).toEqual([]);
}
