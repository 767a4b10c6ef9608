import { describe, expect, it } from "vitest";
import { Notifier } from "./notifier.ts";

describe("Notifier", () => {
  const isSettled = (promise: Promise<void>) => Promise.race([promise.then(() => true), Promise.resolve(false)]);

  it("wakes everyone who waits, and once", async () => {
    const notifier = new Notifier();
    const waiters = [notifier.next(), notifier.next()];
    expect(await Promise.all(waiters.map(isSettled))).toEqual([false, false]);
    notifier.ring();
    expect(await Promise.all(waiters)).toEqual([undefined, undefined]);
  });

  it("wakes a waiter that took the promise before the ring, whenever it awaits it", async () => {
    const notifier = new Notifier();
    const next = notifier.next();
    notifier.ring();
    await next;
  });

  it("keeps no ring for those who come later", async () => {
    const notifier = new Notifier();
    notifier.ring();
    const next = notifier.next();
    await Promise.resolve();
    expect(await isSettled(next)).toBe(false);
  });
});
