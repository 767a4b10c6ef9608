import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import fc from "fast-check";
import { expect, it } from "vitest";
import { ReplaySorter } from "./replay-sorter.ts";

type Message = {
  readonly name: string;
  readonly timestamp: ReturnType<typeof timestampOfMs> | undefined;
  readonly size: number;
};
const message = (name: string, ms?: number, size = 1): Message => ({
  name,
  timestamp: ms === undefined ? undefined : timestampOfMs(ms),
  size,
});
const names = (messages: readonly Message[]) => messages.map(({ name }) => name).join("");
const at = timestampOfMs;

it("frames after connecting are held until it is silent, then sorted", () => {
  const channel = new ReplaySorter<Message>();
  expect(channel.state).toBe("silent");
  expect(names(channel.take(message("c", 3), at(1_000)))).toBe("");
  expect(names(channel.take(message("a", 1), at(1_150)))).toBe("");
  expect(names(channel.advance(at(1_349)))).toBe("");
  expect(names(channel.take(message("b", 2), at(1_349)))).toBe("");
  expect(names(channel.advance(at(1_549)))).toBe("abc");
  expect(channel.state).toBe("live");
  expect(names(channel.take(message("z", 0), at(1_550)))).toBe("z");
});

it("a message that comes after the silence is live itself", () => {
  const channel = new ReplaySorter<Message>();
  channel.take(message("b", 2), at(0));
  expect(names(channel.take(message("a", 1), at(200)))).toBe("ba");
});

it("frames that are repeated without silence are given in sorted pieces", () => {
  const channel = new ReplaySorter<Message>({ pieceMs: 300 });
  expect(names(channel.take(message("b", 2), at(1_000)))).toBe("");
  expect(names(channel.take(message("c", 3), at(1_150)))).toBe("");
  expect(names(channel.take(message("a", 1), at(1_300)))).toBe("abc");
  expect(channel.state).toBe("holding");
  expect(names(channel.take(message("e", 5), at(1_400)))).toBe("");
  expect(names(channel.take(message("d", 4), at(1_500)))).toBe("");
  expect(names(channel.advance(at(1_700)))).toBe("de");
});

it("a channel that is never silent is live after a piece in which nothing was repeated", () => {
  const channel = new ReplaySorter<Message>({ pieceMs: 300 });
  channel.take(message("b", 900), at(1_000));
  channel.take(message("c", 1_100), at(1_150));
  expect(names(channel.take(message("a", 800), at(1_300)))).toBe("abc");
  channel.take(message("d", 1_400), at(1_450));
  channel.take(message("?"), at(1_600));
  expect(names(channel.take(message("e", 1_700), at(1_750)))).toBe("d?e");
  expect(channel.state).toBe("holding");
  channel.take(message("g", 1_890), at(1_900));
  channel.take(message("f", 1_880), at(2_050));
  expect(names(channel.take(message("h", 2_190), at(2_200)))).toBe("fgh");
  expect(names(channel.take(message("i", 2_340), at(2_350)))).toBe("i");
});

it("a clock that is set back holds nothing until it is there again", () => {
  const channel = new ReplaySorter<Message>();
  channel.take(message("b", 2), at(86_400_000));
  channel.take(message("a", 1), at(86_400_010));
  expect(names(channel.advance(at(1_000)))).toBe("");
  expect(names(channel.advance(at(1_199)))).toBe("");
  expect(names(channel.advance(at(1_200)))).toBe("ab");

  const busy = new ReplaySorter<Message>({ pieceMs: 300 });
  busy.take(message("b", 2), at(86_400_000));
  for (const ms of [1_000, 1_150]) expect(names(busy.take(message("a", 1), at(ms)))).toBe("");
  expect(names(busy.take(message("c", 3), at(1_300)))).toBe("aabc");
});

it("bytes bound a piece as well", () => {
  const channel = new ReplaySorter<Message>({ pieceBytes: 10 });
  expect(names(channel.take(message("b", 2, 6), at(0)))).toBe("");
  expect(names(channel.take(message("a", 1, 6), at(1)))).toBe("ab");
});

it("frames bound a piece of empty messages, also where no time passes", () => {
  const channel = new ReplaySorter<Message>({ pieceFrames: 3 });
  expect(names(channel.take(message("c", 3, 0), at(0)))).toBe("");
  expect(names(channel.take(message("a", 1, 0), at(0)))).toBe("");
  expect(names(channel.take(message("b", 2, 0), at(0)))).toBe("abc");
  expect(names(channel.take(message("d", 4, 0), at(0)))).toBe("");
});

it("where nobody says otherwise, a piece is bounded all the same", () => {
  const rarely = new ReplaySorter<Message>();
  const given = Array.from({ length: 60 }, (_, turn) => rarely.take(message("a", turn, 0), at(turn * 150)).length);
  expect(Math.max(...given)).toBeLessThan(40);
  expect(given.reduce((sum, count) => sum + count)).toBeGreaterThan(0);

  const large = new ReplaySorter<Message>();
  large.take(message("b", 2, 40 * 1024 * 1024), at(0));
  expect(names(large.take(message("a", 1, 40 * 1024 * 1024), at(0)))).toBe("ab");

  const many = new ReplaySorter<Message>();
  const none = message("a", 1, 0);
  for (let count = 1; count < 100_000; count += 1) many.take(none, at(0));
  expect(many.take(none, at(0))).toHaveLength(100_000);
});

it("messages without a time keep their place behind the one before", () => {
  const channel = new ReplaySorter<Message>();
  for (const one of [message("?"), message("c", 3), message("!"), message("a", 1), message("."), message("b", 2)]) {
    channel.take(one, at(0));
  }
  expect(names(channel.release())).toBe("?a.bc!");
});

it("nothing is lost and nothing is doubled, whenever time passes", () => {
  const step = fc.record({
    ms: fc.integer({ min: 0, max: 260 }),
    timestamp: fc.integer({ min: 0, max: 9 }),
    tick: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const channel = new ReplaySorter<Message>({ pieceMs: 600, pieceBytes: 7 });
      let now = 0;
      const out: Message[] = [];
      steps.forEach(({ ms, timestamp, tick }, i) => {
        now += ms;
        if (tick) out.push(...channel.advance(at(now)));
        out.push(...channel.take(message(String(i), timestamp), at(now)));
      });
      out.push(...channel.release());
      expect(out.map(({ name }) => Number(name)).sort((a, b) => a - b)).toEqual(steps.map((_, i) => i));
    }),
  );
});
