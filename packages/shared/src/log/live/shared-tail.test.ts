import { jetstreamManager } from "@nats-io/jetstream";
import { expect, it } from "vitest";
import { startTestLog, testStream } from "../../testing/test-log.ts";
import { until } from "../../testing/until.ts";
import { endOf, type Offset } from "../offset.ts";
import { SharedTail } from "./shared-tail.ts";
import type { Tail } from "./tail.ts";
import { Watches } from "./watches.ts";

function tails() {
  const opened: { last: Offset; isClosed: boolean }[] = [];
  const open = (): Tail => {
    const state = { last: endOf(opened.length * 10 + 5), isClosed: false };
    opened.push(state);
    return {
      now: () => ({ last: state.last }) as ReturnType<Tail["now"]>,
      watches: new Watches(),
      async [Symbol.asyncDispose]() {
        state.isClosed = true;
      },
    };
  };
  return { opened, open };
}

it("a tail is open while somebody follows, closed when nobody has for a while, and remembers how far it was", async () => {
  const { opened, open } = tails();
  await using shared = new SharedTail(open, 20);
  expect(shared.isOpen).toBe(false);
  const [one, other] = [shared.hold(), shared.hold()];
  expect(one.tail).toBe(other.tail);
  one.release();
  expect(opened).toMatchObject([{ isClosed: false }]);
  other.release();
  shared.hold().release();
  await until(() => !shared.isOpen, { message: "the tail to be closed" });
  expect(opened).toMatchObject([{ isClosed: true }]);
  expect(shared.lastSeen).toBe(5);
  shared.hold().release();
  expect(opened).toHaveLength(2);
  expect(shared.lastSeen).toBe(15);
});

it("nobody follows a log that was closed", async () => {
  const { opened, open } = tails();
  const shared = new SharedTail(open);
  shared.hold();
  await shared[Symbol.asyncDispose]();
  expect(opened).toMatchObject([{ isClosed: true }]);
  expect(() => shared.hold()).toThrow("the log was closed");
});

it("a log has no consumer on its server until it is followed", async () => {
  await using log = await startTestLog();
  const { consumers } = await jetstreamManager(log.nc);
  const count = async () => (await consumers.list(testStream).next()).length;
  expect(await count()).toBe(0);
  const stop = new AbortController();
  const following = log.reader.follow({ afterOffset: endOf(0), subjects: [] }, { signal: stop.signal });
  const next = following.next();
  await until(async () => (await count()) === 1, { message: "the tail's consumer" });
  stop.abort();
  expect(await next).toEqual({ done: true, value: undefined });
});
