import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { evolve } from "./evolve.ts";
import { initialState, type SkaffoldState } from "./state.ts";
import { answers, comparable } from "./testing/answers.ts";
import { type Entry, inOrder } from "./testing/in-order.ts";
import { type RecordedAnswer, recordedSession, recordingNames } from "./testing/recorded-session.ts";

const sessions = recordingNames().map(recordedSession);
const named = sessions.map((session) => [session.name, session] as const);

function fold(events: readonly Event[], from: SkaffoldState = initialState): SkaffoldState {
  return events.reduce(evolve, from);
}

/** Answers that the fold can't know, by recording and file. */
const unknowable: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "05-control-api-auto-off": {
    "v2-state-07-after-v2-execute.json": "a v2 call reset v2's state, and nothing else, without an event",
    "v2-state-08-after-v2-auto-build-on.json": "the same, and its flag",
  },
  "17-invalid-utf8-in-build-output": {
    "v2-state-01-after-bad-bytes.json": "the v2 stream had broken in the middle of the build",
    "v2-state-02-after-next-edit.json": "the v2 stream had broken a loop before",
  },
};

/** Recordings whose v2 reader connected only after the answers; what had happened by then is known by time alone. */
const readLater = new Set(["12c-wait-for-connection"]);

describe("the answers of GetState in quiet moments", () => {
  const tally = { compared: 0, unequal: 0 };
  afterAll(() => console.info(`states: ${tally.compared} compared, ${tally.unequal} of them differ as expected`));

  describe.each(named.filter(([, { states }]) => states.length > 0))("%s", (name, session) => {
    const log = inOrder(session);
    it.each(session.states)("$file", (answer) => {
      const folded = answers(fold(cut(log, answer, readLater.has(name))))[answer.api];
      const recorded = comparable(answer.json);
      tally.compared++;
      if (unknowable[name]?.[answer.file] === undefined) return expect(folded).toEqual(recorded);
      tally.unequal++;
      expect(folded, "no longer an exception").not.toEqual(recorded);
    });
  });
});

/** What had been recorded when the answer was given: by count in its own stream, by time in the other. */
function cut(log: readonly Entry[], answer: RecordedAnswer, byTime: boolean): readonly Event[] {
  return log
    .filter((entry) => (entry.api === answer.api && !byTime ? entry.index < answer.seen : entry.at <= answer.at))
    .map((entry) => entry.event);
}

describe.each(named)("%s", (_name, session) => {
  const log = inOrder(session);
  const events = log.map(({ event }) => event);
  const folded = fold(events);

  it("folds to the same however v1 and v2 interleave", () => {
    // Text can't matter, and there is a lot of it.
    const v2 = session.v2.filter((event) => fold([event]) !== initialState || fold([event], folded) !== folded);
    const others = log.filter(({ api }) => api !== "v2").map(({ event }) => event);
    const places = fc.array(fc.nat(others.length), { minLength: v2.length, maxLength: v2.length });
    const runs = fc.property(places, (unsorted) => {
      const sorted = unsorted.toSorted((a, b) => a - b);
      let taken = 0;
      const interleaved = [...others, undefined].flatMap((event, index) => {
        const from = taken;
        while (sorted[taken] === index) taken++;
        return [...v2.slice(from, taken), ...(event ? [event] : [])];
      });
      expect(interleaved.length).toBe(v2.length + others.length);
      expect(answers(fold(interleaved))).toEqual(answers(folded));
    });
    fc.assert(runs, { numRuns: 50 });
    for (const extreme of [
      [...others, ...v2],
      [...v2, ...others],
    ]) {
      expect(answers(fold(extreme))).toEqual(answers(folded));
    }
  });

  it("goes on from a snapshot as if there had been none", () => {
    const cuts = fc.nat(events.length);
    const runs = fc.property(cuts, (at) => {
      const before = fold(events.slice(0, at));
      const stored = JSON.parse(JSON.stringify(before)) as SkaffoldState;
      expect(stored).toStrictEqual(before);
      expect(fold(events.slice(at), stored)).toStrictEqual(folded);
    });
    fc.assert(runs, { numRuns: 20 });
  });

  it("folds to the same state wherever the description comes, if no call changes its values", () => {
    if (session.calls.length > 0 || session.states.length === 0) return;
    const rest = events.filter((event) => event !== session.described);
    for (const place of [0, Math.floor(rest.length / 2), rest.length]) {
      const moved = [...rest.slice(0, place), session.described, ...rest.slice(place)];
      expect(answers(fold(moved))).toEqual(answers(folded));
    }
  });
});
