import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { vagrantHarness } from "../apis/vagrant/testing/vagrant-harness.ts";
import { vagrantApi } from "../apis/vagrant/vagrant-api.ts";
import { timedSemaphore } from "./semaphore.ts";

let over: AbortController;
beforeEach(() => {
  over = new AbortController();
});
afterEach(() => over.abort());

const refusal = { code: "limit_exceeded", retryAfter: 1 };

describe("a semaphore", () => {
  it("lets the next one in when a turn ends, by itself or with its call", async () => {
    const semaphore = timedSemaphore({ atOnce: 1, timeoutMs: 60_000, what: "answers" });
    const call = new AbortController();
    await semaphore.acquire(call.signal);
    const order: string[] = [];
    const second = semaphore.acquire(over.signal).then((end) => {
      order.push("second");
      return end;
    });
    const third = semaphore.acquire(over.signal).then(() => order.push("third"));
    await Promise.resolve();
    expect(order).toEqual([]);
    call.abort();
    (await second)();
    await third;
    expect(order).toEqual(["second", "third"]);
  });

  it("refuses a caller that has waited too long, and lets it try again", async () => {
    const semaphore = timedSemaphore({ atOnce: 1, timeoutMs: 20, what: "answers" });
    const end = await semaphore.acquire(over.signal);
    await expect(semaphore.acquire(over.signal)).rejects.toMatchObject({
      ...refusal,
      message: "too many answers in progress (limit 1): try again",
    });
    end();
    end();
    (await semaphore.acquire(over.signal))();
  });
});

it("all jobs of a Vagrant server are sent to a few at once: until they are taken, the turn is theirs", async () => {
  await using harness = await vagrantHarness();
  const largeAnswers = timedSemaphore({ atOnce: 1, timeoutMs: 20, what: "large answers" });
  const control = { call: () => Promise.reject(new Error("nothing is called")) };
  const streams = { open: () => Promise.reject(new Error("nothing is opened")) };
  const { unary } = vagrantApi({ ...harness.deps, control, streams, largeAnswers, refused: () => {}, audit: () => {} });
  const call = new AbortController();
  const listed = (signal: AbortSignal) => unary.listJobs(new Uint8Array(), harness.context({ signal }));

  await listed(call.signal);
  await expect(listed(over.signal)).rejects.toMatchObject(refusal);
  call.abort();
  // One that fails holds nothing.
  await expect(unary.listJobs(new Uint8Array(), harness.context({ at: "before" }))).rejects.toMatchObject({
    code: "before_first",
  });
  await listed(over.signal);
});
