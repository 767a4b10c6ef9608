import { Resources } from "@tapedeck/proto/tapedeck/v1/observation";
import { searched } from "@tapedeck/shared/testing/searches";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fact } from "../../fact.ts";
import type { ObservationOutcome } from "../../inventory/observing.ts";
import {
  box,
  type Entry,
  everyKind,
  framesOf,
  intervalsOf,
  playResources,
  type ResourcePlay,
  readBack,
  target,
} from "../testing/resources-play.ts";

/** What happens to the resources until the next observation, and how they are polled. */
type PollRound = {
  readonly moves: readonly Move[];
  readonly observation: "targets" | "boxes" | "both" | "failed" | "reconnect";
};
type Move = {
  readonly what: "add" | "drop" | "change" | "break";
  readonly kind: "target" | "box";
  readonly which: number;
};

const move: fc.Arbitrary<Move> = fc.record({
  what: fc.constantFrom("add", "add", "drop", "change", "break"),
  kind: fc.constantFrom("target", "target", "box"),
  which: fc.nat(3),
});
const step: fc.Arbitrary<PollRound> = fc.record({
  moves: fc.array(move, { maxLength: 3 }),
  observation: fc.constantFrom("targets", "targets", "boxes", "both", "failed", "reconnect"),
});
const history = fc.array(step, { minLength: 1, maxLength: 20 });

type ListedResource = {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly isBroken: boolean;
};
type Play = (harness: ResourcePlay) => void;

/**
 * The same observations for any number of watchers, as a tap gives them: `same` for what did not change on a
 * connection.
 */
function observationsOf(steps: readonly PollRound[]): readonly Play[] {
  const listed: Record<Move["kind"], readonly ListedResource[]> = { target: [], box: [] };
  const last = new Map<string, string>();
  let made = 0;
  const entriesOf = (kind: Move["kind"]) => {
    const entries = listed[kind].map((resource) => entryOf(kind, resource));
    const text = JSON.stringify(entries.map(([id, bytes]) => [id, Buffer.from(bytes).toString("hex")]));
    const isSame = last.get(kind) === text;
    last.set(kind, text);
    return isSame ? ("same" as const) : entries;
  };
  return steps.map(({ moves, observation }, index) => {
    for (const { what, kind, which } of moves) {
      made += 1;
      listed[kind] = moved(listed[kind], what, which, `${kind}${made}`);
    }
    const at = 2_000 + index * 1_000;
    if (observation === "failed") return (harness) => harness.failed(at, "target: no");
    if (observation === "reconnect") {
      last.clear();
      const observed = { ...everyKind, target: entriesOf("target"), box: entriesOf("box") };
      return (harness) => {
        harness.watcher.connected();
        harness.observation(at, observed);
      };
    }
    const observed = {
      ...(observation !== "boxes" && { target: entriesOf("target") }),
      ...(observation !== "targets" && { box: entriesOf("box") }),
    };
    return (harness) => harness.observation(at, observed);
  });
}

function moved(
  resources: readonly ListedResource[],
  what: Move["what"],
  which: number,
  id: string,
): readonly ListedResource[] {
  const name = `n${which}`;
  if (what === "add") {
    const isTaken = resources.some((resource) => resource.name === name);
    return isTaken ? resources : [...resources, { id, name, version: 0, isBroken: false }];
  }
  if (what === "drop") return resources.filter((_, index) => index !== which);
  return resources.map((resource, index) =>
    index === which ? { ...resource, version: resource.version + 1, isBroken: what === "break" } : resource,
  );
}

function entryOf(kind: Move["kind"], { id, name, version, isBroken }: ListedResource): Entry {
  if (isBroken) return [id, Buffer.from(`\n\xff${id} ${version}`, "latin1")];
  return kind === "target" ? target(id, { name, uuid: `${version}` }) : box(id, { name, directory: `${version}` });
}

function started(describeAfter: number): ResourcePlay {
  const harness = playResources({ describeAfter });
  harness.observation(1_000, everyKind);
  return harness;
}

function reported(record: readonly ObservationOutcome[], isComplete: boolean) {
  return framesOf(record).map(({ facts: [{ notBefore: _, ...fact }], original }) => ({
    fact: isComplete ? fact : withoutReplaces(fact),
    original: Buffer.from(original?.bytes ?? []).toString("hex"),
  }));
}

/** Nothing can't be read: a watcher that resumes knows what was recorded since the last description. */
function readable(steps: readonly PollRound[]): readonly PollRound[] {
  const readableMove = (one: Move): Move => (one.what === "break" ? { ...one, what: "change" } : one);
  return steps.map((one) => ({ ...one, moves: one.moves.map(readableMove) }));
}

/** It does not know either what was removed before that. */
function withoutReplaces<Some extends Pick<Fact, "detail">>(fact: Some): Some {
  if (fact.detail?.$case !== "thing") return fact;
  return { ...fact, detail: { $case: "thing", value: { ...fact.detail.value, replaces: "" } } };
}

describe("a watcher of Vagrant's resources", () => {
  it.each([
    { describeAfter: 1_000, given: history },
    { describeAfter: 4, given: history.map(readable) },
  ])(
    "emits the same after it was resumed in the middle of any observation ($describeAfter)",
    ({ describeAfter, given }) => {
      fc.assert(
        fc.property(given, fc.nat(19), fc.nat(5), (steps, where, published) => {
          const observations = observationsOf(steps);
          const cut = Math.min(where, observations.length - 1);
          const one = started(describeAfter);
          for (const observation of observations.slice(0, cut)) observation(one);
          const before = one.record.length;
          observations[cut]?.(one);
          // Killed when so many facts of that observation were in the log; no part of a description is there alone.
          const inLog = Math.min(before + published, one.record.length);
          const other = playResources({ describeAfter });
          for (const event of readBack(one.record.slice(0, inLog))) other.watcher.resume(event);
          other.watcher.connected();
          for (const [index, observation] of observations.entries()) {
            if (index > cut) observation(one);
            if (index >= cut) observation(other);
          }
          const rest = one.record.slice(inLog);
          const isComplete = describeAfter === 1_000;
          expect(reported(other.record, isComplete)).toEqual(reported(rest, isComplete));
          const known = intervalsOf(rest);
          for (const [index, [after, until]] of intervalsOf(other.record).entries()) {
            const [narrow, same] = known[index] ?? [];
            expect(until).toBe(same);
            expect(typeof after).toBe(typeof narrow);
            expect(after ?? 0).toBeLessThanOrEqual(narrow ?? 0);
          }
        }),
        { numRuns: searched({ short: 60, long: 1_500 }) },
      );
    },
  );

  it("describes what a fold of its events knows, in the same order", () => {
    fc.assert(
      fc.property(history.map(readable), (steps) => {
        const harness = started(3);
        for (const observation of observationsOf(steps)) observation(harness);
        let folded: Record<string, Map<string, string>> = {};
        for (const { facts, original } of framesOf(harness.record)) {
          const [{ kind, detail }] = facts;
          const bytes = original?.bytes ?? Buffer.alloc(0);
          if (kind === "inventory.described") {
            const described = Resources.decode(bytes).kinds.map(({ kind, entries }) => {
              const known = entries.map(({ id, bytes }) => [id, bytes.toString("hex")] as const);
              return [kind, new Map(known)] as const;
            });
            for (const [kind, known] of Object.entries(folded)) {
              expect([kind, [...known]]).toEqual([kind, [...(new Map(described).get(kind) ?? [])]]);
            }
            folded = Object.fromEntries(described);
          } else if (detail?.$case === "thing") {
            const known = folded[detail.value.kind];
            if (original === undefined) known?.delete(detail.value.id);
            else known?.set(detail.value.id, Buffer.from(bytes).toString("hex"));
          }
        }
      }),
      { numRuns: searched({ short: 60, long: 1_500 }) },
    );
  });
});
