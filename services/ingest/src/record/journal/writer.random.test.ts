import type { NewEvent } from "@tapedeck/shared/log/log";
import { sourceName } from "@tapedeck/shared/source";
import { searched } from "@tapedeck/shared/testing/searches";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type FakeLog, type Fate, fakeLog } from "../testing/fake-log.ts";
import { LostRaceError } from "./settle.ts";
import { SourceWriter } from "./writer.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const retry = { first: 0, max: 1 };
const well: Fate = { lands: "now", answers: true };

const event = (ordinal: number, bytes = 10): NewEvent => ({
  subject: "tapedeck.v2.acme.alice.shop.skaffold.frames.text",
  session: "S",
  event: new Uint8Array(bytes).fill(ordinal % 256),
  cursor: { session: "S", ordinals: { v1: ordinal, tapedeck: 1 }, frames: { v1: ordinal } },
});
const events = (from: number, count: number) => Array.from({ length: count }, (_, i) => event(from + i));
const ordinals = (log: FakeLog) => log.stored.map(({ written }) => written.cursor.ordinals.v1);
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

const fates = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Fate>(well) },
  fc.constant<Fate>({ lands: "now", answers: false }),
  fc.constant<Fate>({ lands: "late", answers: false }),
  fc.constant<Fate>({ lands: "never", answers: false }),
  fc.constant<Fate>({ lands: "never", answers: true, refuses: true }),
);

/** Gives the fates in turn, then nothing but good ones. Late ones land just before the turns that are marked. */
function network(
  turns: readonly { fate: Fate; landing: boolean; lastOfFails: boolean }[],
  onPublish: () => void = () => {},
) {
  let turn = 0;
  let failures = 0;
  const log: FakeLog = fakeLog(
    () => {
      const now = turns[turn++];
      if (now?.landing) log.landLate();
      return now?.fate ?? well;
    },
    { lastOfFails: () => turns[failures++]?.lastOfFails ?? false, onPublish },
  );
  return log;
}

const turns = fc.array(fc.record({ fate: fates, landing: fc.boolean(), lastOfFails: fc.boolean() }), {
  maxLength: 12,
  size: "max",
});

it("whatever the network loses, every event is in the log once and in order", async () => {
  await fc.assert(
    fc.asyncProperty(
      turns,
      fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 8 }),
      async (turns, groups) => {
        const log = network(turns);
        await using writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry });
        let next = 1;
        for (const size of groups) {
          writer.append(events(next, size));
          next += size;
          if (size % 2 === 0) await Promise.resolve();
        }
        await writer.reached(next - 1);
        log.landLate();
        expect(ordinals(log)).toEqual(upTo(next - 1));
      },
    ),
    { numRuns: searched({ short: 100, long: 5_000 }) },
  );
});

it("a writer that comes after another, whose last message is still on its way, never mixes with it", async () => {
  await fc.assert(
    fc.asyncProperty(turns, turns, fc.integer({ min: 1, max: 6 }), async (before, after, publishes) => {
      let left = publishes;
      const enough = Promise.withResolvers<void>();
      const log = network([...before, ...after], () => {
        if (--left === 0) enough.resolve();
      });
      const first = new SourceWriter({ log, source, writer: "A", afterSeq: 0, retry });
      first.append(events(1, 3));
      first.append(events(4, 1));
      await Promise.race([first.reached(3).catch(() => {}), enough.promise]);
      await first[Symbol.asyncDispose](); // as a kill would: what was in flight may land any time

      let restarts = 0;
      while ((ordinals(log).at(-1) ?? 0) < 8) {
        expect(restarts++).toBeLessThan(10);
        const there = log.stored.at(-1);
        const done = there?.written.cursor.ordinals.v1 ?? 0;
        await using second = new SourceWriter({
          log,
          source,
          writer: `B${restarts}`,
          afterSeq: there?.seq ?? 0,
          retry,
        });
        second.append(events(done + 1, 8 - done));
        await second.reached(8 - done).catch((cause) => expect(cause).toBeInstanceOf(LostRaceError));
      }
      log.landLate();
      expect(ordinals(log)).toEqual(upTo(8));
    }),
    { numRuns: searched({ short: 60, long: 3_000 }) },
  );
});
