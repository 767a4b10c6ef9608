import type { HeldEvent } from "@tapedeck/shared/log/log";
import { offsetOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { expect, it } from "vitest";
import { heldEvents } from "../testing/held-events.ts";
import { Gatherer } from "./gatherer.ts";

/** A reader of the log that gives what is put into it, and says whenever it has nothing more. */
function harness({
  gatherMs = 1,
  matches = () => true,
}: {
  gatherMs?: number;
  matches?: (held: HeldEvent) => boolean;
}) {
  const queue: (readonly HeldEvent[] | Error | "end")[] = [];
  const put = new Notifier();
  let end = 0;
  async function* read(): AsyncGenerator<readonly HeldEvent[], void> {
    for (;;) {
      const next = put.next();
      const batch = queue.shift();
      if (batch === undefined) {
        gatherer.reached(offsetOf(end));
        await next;
      } else if (batch === "end") return;
      else if (batch instanceof Error) throw batch;
      else {
        end = sequenceOf(batch.at(-1)?.offset ?? offsetOf(0));
        yield batch;
      }
    }
  }
  const passed: [sequence: number, isEnd: boolean][] = [];
  const gatherer: Gatherer = new Gatherer(read(), {
    gatherMs,
    matches,
    passed: (offset, isEnd) => passed.push([sequenceOf(offset), isEnd]),
  });
  return {
    passed,
    put: (...batches: typeof queue) => {
      queue.push(...batches);
      put.ring();
    },
    next: async () => (await gatherer.next())?.map(({ offset }) => sequenceOf(offset)),
  };
}

it("gathers what comes in a moment, and no more than a request may have", async () => {
  const on = harness({});
  on.put(...Array.from({ length: 10 }, (_, index) => heldEvents(index * 30 + 1, index * 30 + 30)));
  expect(await on.next()).toHaveLength(90);
  expect((await on.next())?.[0]).toBe(91);
  expect(await on.next()).toHaveLength(90);
  const last = on.next();
  on.put(heldEvents(301, 303));
  expect(await last).toEqual(expect.arrayContaining([271, 300]));
});

it("passes events that do not match, and those it gave only with the next request", async () => {
  const on = harness({ matches: ({ offset }) => sequenceOf(offset) % 10 === 0 });
  on.put(heldEvents(1, 5), heldEvents(6, 12));
  expect(await on.next()).toEqual([10]);
  expect(on.passed).toEqual([[5, false]]);
  const next = on.next();
  on.put(heldEvents(13, 20));
  expect(await next).toEqual([20]);
  // The reader had reached 12 while 10 was in hand.
  expect(on.passed).toEqual([
    [5, false],
    [12, true],
  ]);
});

it("gives what it has before an error, and before the end", async () => {
  for (const last of ["end", new Error("gone")] as const) {
    const on = harness({});
    on.put(heldEvents(1, 2), last);
    expect(await on.next()).toEqual([1, 2]);
    if (last === "end") expect(await on.next()).toBeUndefined();
    else await expect(on.next()).rejects.toThrow("gone");
  }
});
