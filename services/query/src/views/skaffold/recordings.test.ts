import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
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
};

describe("what GetState answered in quiet moments", () => {
  const tally = { compared: 0, unequal: 0 };
  afterAll(() => console.info(`states: ${tally.compared} compared, ${tally.unequal} of them differ as expected`));

  describe.each(named.filter(([, { states }]) => states.length > 0))("%s", (name, session) => {
    const log = inOrder(session);
    it.each(session.states)("$file", (answer) => {
      const folded = answers(fold(cut(log, answer)))[answer.api];
      const recorded = comparable(answer.json);
      tally.compared++;
      if (unknowable[name]?.[answer.file] === undefined) return expect(folded).toEqual(recorded);
      tally.unequal++;
      expect(folded, "no longer an exception").not.toEqual(recorded);
    });
  });
});

/** What had been told when the answer was given: by count in its own stream, by time in the other. */
function cut(log: readonly Entry[], answer: RecordedAnswer): readonly Event[] {
  return log
    .filter((entry) => (entry.api === answer.api ? entry.index < answer.seen : entry.at <= answer.at))
    .map((entry) => entry.event);
}
