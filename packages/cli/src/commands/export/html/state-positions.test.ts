import { describe, expect, it } from "vitest";
import { statePositions } from "./state-positions.ts";

const event = (kind: string, index: number) => ({ kind, position: String(index).padStart(4, "0") }) as const;
const events = Array.from({ length: 300 }, (_, index) =>
  event(
    (["loop.started", "build.started", "log.written", "build.succeeded", "port.forwarded"] as const)[index % 5] ?? "",
    index,
  ),
) as Parameters<typeof statePositions>[0];
const at = (positions: readonly string[]) => positions.map(Number);

describe("the positions whose state is in a file", () => {
  it("are those of all events but text, where they are few, with the first and the last event's", () => {
    const all = at(statePositions(events, 400));
    expect(all).toEqual(events.flatMap(({ kind }, index) => (kind === "log.written" ? [] : [index])));
    expect(at(statePositions(events.slice(2, 3), 400))).toEqual([2]);
  });

  it("are else those of loops first, then of ends, and the rest evenly", () => {
    const few = at(statePositions(events, 130));
    expect(few).toHaveLength(130);
    expect(few).toEqual(few.toSorted((a, b) => a - b));
    for (let loop = 0; loop < 300; loop += 5) expect(few).toContain(loop);
    for (let end = 3; end < 300; end += 5) expect(few).toContain(end);
    expect(few.at(-1)).toBe(299);
    const fewer = at(statePositions(events, 21));
    expect(fewer).toHaveLength(21);
    expect(fewer.slice(0, -1).every((index) => index % 5 === 0)).toBe(true);
    // From all of the session, and not from one end of it.
    expect(Math.max(...fewer.slice(1).map((index, number) => index - (fewer[number] ?? 0)))).toBeLessThan(30);
  });

  it("are both the start and the end of a loop, or neither, those of failed loops first", () => {
    const looped = Array.from({ length: 80 }, (_, number) => [
      event("loop.started", number * 4),
      event("build.started", number * 4 + 1),
      event("build.failed", number * 4 + 2),
      event(number % 20 === 10 ? "loop.failed" : "loop.succeeded", number * 4 + 3),
    ]).flat() as Parameters<typeof statePositions>[0];
    const found = at(statePositions(looped, 41));
    expect(found).toHaveLength(41);
    const loopsOf = (rest: number) => found.filter((index) => index % 4 === rest).map((index) => Math.floor(index / 4));
    // The first and the last event are there anyway.
    const inner = (loops: readonly number[]) => loops.filter((number) => number > 0 && number < 79);
    expect(inner(loopsOf(0))).toEqual(inner(loopsOf(3)));
    for (const failed of [10, 30, 50, 70]) expect(loopsOf(0)).toContain(failed);
    expect(loopsOf(0).length).toBeGreaterThan(15);
  });

  it("are the last event's where there is room for one, and none without events", () => {
    expect(at(statePositions(events, 1))).toEqual([299]);
    expect(statePositions([], 10)).toEqual([]);
  });
});
