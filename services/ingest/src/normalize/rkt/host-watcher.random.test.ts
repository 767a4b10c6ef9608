import { AppState, Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { acceptPod } from "@tapedeck/shared/rkt/accept";
import { podEntries } from "@tapedeck/shared/rkt/entries";
import { searched } from "@tapedeck/shared/testing/searches";
import { msOfTimestamp } from "@tapedeck/shared/time/timestamp";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PodStatus } from "./pods/pod-table.ts";
import { eventsOf, image, type Play, type PodFields, play, pod } from "./testing/host-play.ts";

const ids = ["p", "q", "r"] as const;
const life: readonly PodStatus[] = ["PREPARING", "PREPARED", "RUNNING", "EXITED", "GARBAGE", "UNDEFINED"];

/** What one pod does until the next list: goes on, is left out, or is answered in any way whatever. */
type Move = "stay" | "next" | "away" | PodFields;
type Action =
  | { readonly what: "all"; readonly moves: readonly Move[] }
  | { readonly what: "same" | "failed" | "reconnect" }
  | { readonly what: "one"; readonly id: string; readonly answer: "as listed" | "later" | "resolve" | "get" };

const code = fc.constantFrom(0, 0, 0, 7, 9, -1);
const anyLook: fc.Arbitrary<PodFields> = fc
  .record({
    state: fc.constantFrom(...life, "ABORTED_PREPARE" as const, "RUNNING" as const, "EXITED" as const),
    codes: fc.oneof(fc.record({ a: code }), fc.record({ a: code, b: code })),
    isEarly: fc.boolean(),
    isDead: fc.boolean(),
  })
  .map(({ state, codes, isEarly, isDead }) => ({
    state,
    codes,
    ...(isEarly && { started: 0, pid: -1 }),
    ...(isDead && { appState: AppState.APP_STATE_EXITED }),
  }));
const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 3, arbitrary: fc.constant("next" as const) },
  { weight: 3, arbitrary: fc.constantFrom("stay" as const, "away" as const) },
  { weight: 2, arbitrary: anyLook },
);
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ what: fc.constant("all" as const), moves: fc.tuple(move, move, move) }) },
  {
    weight: 2,
    arbitrary: fc.record({ what: fc.constantFrom("same" as const, "failed" as const, "reconnect" as const) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant("one" as const),
      id: fc.constantFrom(...ids),
      answer: fc.constantFrom("as listed" as const, "later" as const, "resolve" as const, "get" as const),
    }),
  },
);

type Do = (harness: Play, at: number) => void;
type PlayedObservation = { readonly isAll: boolean; readonly run: (harness: Play) => void };

/** The same observations for any number of watchers: what each action gives depends on those before it alone. */
function observationsOf(actions: readonly Action[], { comeBack = true } = {}): readonly PlayedObservation[] {
  let at = 0;
  const observations = new Map<string, PodFields>();
  const known = new Map<string, PodFields>();
  return actions.map((one) => {
    // An answer about one comes right after its observation.
    at += one.what === "one" ? 1 : 1_000;
    const now = at;
    if (one.what === "all") {
      for (const [index, id] of ids.entries()) {
        const isAway = known.has(id) && !observations.has(id);
        const next =
          isAway && !comeBack ? undefined : moved(observations.get(id), known.get(id), one.moves[index] ?? "stay");
        if (next === undefined) observations.delete(id);
        else {
          observations.set(id, next);
          if (progress(next) >= progress(known.get(id))) known.set(id, next);
        }
      }
      const listed = [...observations].map(([id, observation]) => pod(id, observation));
      return { isAll: true, run: (harness) => harness.pods(now, ...listed) };
    }
    const run = otherLook(one, new Map([...known, ...observations]));
    return { isAll: false, run: (harness) => run(harness, now) };
  });
}

function moved(listed: PodFields | undefined, known: PodFields | undefined, by: Move): PodFields | undefined {
  if (by === "stay") return listed;
  if (by === "away") return undefined;
  if (by === "next") {
    const state = life[progress(known) + 1];
    return state === undefined ? undefined : { ...(known?.codes && { codes: known.codes }), state };
  }
  // A pod that comes back is not in an earlier state: that would be another pod.
  const isBack = listed === undefined && known !== undefined && progress(by) < progress(known);
  return isBack ? { ...by, state: known.state } : by;
}

function progress(observation: PodFields | undefined): number {
  return observation?.state === "ABORTED_PREPARE" ? 0 : life.indexOf((observation?.state ?? "") as PodStatus);
}

/** `latest`: as listed, or else as listed last. */
function otherLook(one: Exclude<Action, { what: "all" }>, latest: ReadonlyMap<string, PodFields>): Do {
  switch (one.what) {
    case "same":
      return (harness, at) => harness.same("pods", at);
    case "failed":
      return (harness, at) => harness.failed("pods", at);
    case "reconnect":
      return (harness, at) => reconnect(harness, at);
    case "one": {
      const observation = latest.get(one.id);
      if (one.answer === "resolve")
        return (harness, at) => harness.refused("pods", at, one.id, "unable to resolve UUID");
      if (one.answer === "get") return (harness, at) => harness.refused("pods", at, one.id, "unable to get pod");
      if (observation === undefined) return () => undefined;
      // What a pod that ended answers later: only forward, since the list will be asked again.
      const later = observation.state === "EXITED" ? { state: "GARBAGE" as const, codes: { a: 7, b: 9 } } : observation;
      const found = pod(one.id, one.answer === "later" ? later : observation);
      return (harness, at) => harness.inspected(at, found);
    }
  }
}

/** With an image that is always there: what is gone is gone. */
function reconnect(harness: Play, at: number): void {
  harness.watcher.connected();
  harness.images(at, image("sha512-1"));
}

function started(describeAfter: number): Play {
  const harness = play({ describeAfter });
  harness.pods(1);
  harness.images(1, image("sha512-1"));
  return harness;
}

type Reporting = { readonly what: unknown; readonly from: number; readonly until: number };

/** By pod, the facts from a place of the record on, and their times. */
function reported({ record }: Play, from = 0): Map<string, readonly Reporting[]> {
  const by = new Map<string, readonly Reporting[]>();
  for (const { seen } of record.slice(from)) {
    if (seen.what !== "frame") continue;
    for (const [index, { summary: _, occurredAt, notBefore, ...fact }] of seen.facts.entries()) {
      const id = fact.detail?.$case === "pod" || fact.detail?.$case === "app" ? fact.detail.value.pod : "host";
      const original = index === 0 && seen.original ? Buffer.from(seen.original.bytes).toString("hex") : "";
      const until = msOfTimestamp(occurredAt ?? seen.observedAt);
      const isOwnTime = occurredAt !== undefined && notBefore === undefined;
      const at = { from: isOwnTime ? until : notBefore ? msOfTimestamp(notBefore) : 0, until };
      by.set(id, [...(by.get(id) ?? []), { what: { ...fact, original }, ...at }]);
    }
  }
  return by;
}

function kindOf(what: unknown): string {
  return (what as { readonly kind: string }).kind;
}

const history = fc.array(action, { minLength: 1, maxLength: 30 });

describe("a watcher of rkt", () => {
  it("emits the same after it was resumed, anywhere, in intervals that hold the true ones", () => {
    fc.assert(
      fc.property(history, fc.nat(30), fc.constantFrom(4, 1_000), (actions, where, describeAfter) => {
        const observations = observationsOf(actions, { comeBack: true });
        const cut = Math.min(where, observations.length);
        const one = started(describeAfter);
        for (const { run } of observations.slice(0, cut)) run(one);
        const before = one.record.length;
        // An answer about one describes its own moment, which is taken for that of the observation before it.
        const answers = actions.filter(({ what }) => what === "one").length;
        const wasOut = actions.slice(0, cut).some(({ what }) => what === "failed" || what === "reconnect");

        const other = play({ describeAfter });
        for (const event of readBack(one)) other.watcher.resume(event);
        reconnect(other, 1);
        const lastAll = observations.slice(0, cut).findLastIndex(({ isAll }) => isAll);
        for (const [index, { run }] of observations.entries()) {
          // From the last whole answer on, observations come again.
          if (index >= cut) run(one);
          if (index >= cut || (lastAll >= 0 && index >= lastAll)) run(other);
        }
        const [mine, theirs] = [reported(one, before), reported(other)];
        const whats = (all: typeof mine) =>
          Object.fromEntries([...all].map(([id, list]) => [id, list.map(({ what }) => what)]));
        // How often in a row a host has contradicted the record is counted anew by who was resumed, and so are the events
        // after which all is described.
        for (const [id, list] of [...mine, ...theirs]) {
          if (!list.some(({ what }) => kindOf(what) === "pod.contradicted")) continue;
          for (const other of [id, "host"]) {
            mine.delete(other);
            theirs.delete(other);
          }
        }
        expect(whats(theirs)).toEqual(whats(mine));
        for (const [id, list] of mine) {
          for (const [index, { from, until }] of list.entries()) {
            const wider = theirs.get(id)?.[index];
            // What was missed over an outage was missed longer than is known to one who was resumed after it.
            if (!wasOut) expect(wider?.from).toBeLessThanOrEqual(from + answers);
            expect(wider?.until).toBeGreaterThanOrEqual(until);
          }
        }
      }),
      { numRuns: searched({ short: 200, long: 5_000 }) },
    );
  });

  it("emits each pod's milestones once, whatever it is answered, as long as the host does not insist that it goes back", () => {
    fc.assert(
      fc.property(history, (actions) => {
        const harness = started(1_000);
        for (const { run } of observationsOf(actions)) run(harness);
        for (const [id, list] of reported(harness)) {
          if (id === "host") continue;
          const kinds = list.map(({ what }) => kindOf(what));
          const once = kinds.filter((kind) => kind.startsWith("pod.") && kind !== "pod.changed");
          for (let from = 0; from >= 0; ) {
            const back = once.indexOf("pod.contradicted", from);
            const part = once.slice(from, back < 0 ? undefined : back);
            expect(part).toEqual([...new Set(part)]);
            from = back < 0 ? back : back + 1;
          }
          // Nobody can know how often a pod that is gone went.
          const collected = once.filter((kind) => kind === "pod.collected");
          expect(collected.length).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: searched({ short: 100, long: 2_500 }) },
    );
  });

  it("describes what a fold of its events knows", () => {
    fc.assert(
      fc.property(history, (actions) => {
        const harness = started(3);
        for (const { run } of observationsOf(actions)) run(harness);
        const folded = new Map<string, Pod>();
        for (const { detail, kind, channel, original } of eventsOf(harness.record)) {
          if (channel !== "pods") continue;
          const bytes = original?.bytes ?? Buffer.alloc(0);
          if (kind === "inventory.described") {
            const described = (podEntries(bytes) ?? []).map((entry) => [entry.id, entry.bytes.toString("hex")]);
            const known = [...folded].map(([id, one]) => [id, Buffer.from(Pod.encode(one).finish()).toString("hex")]);
            expect(Object.fromEntries(described)).toEqual(Object.fromEntries(known));
          } else if (detail?.$case === "pod" || detail?.$case === "app") {
            const id = detail.value.pod;
            if (original !== undefined) folded.set(id, acceptPod(folded.get(id), Pod.decode(bytes)));
            const isRemoved = detail.$case === "pod" && (detail.value.last_state !== "" || detail.value.removed);
            if (isRemoved) folded.delete(id);
          }
        }
      }),
      { numRuns: searched({ short: 100, long: 2_500 }) },
    );
  });
});

/** What a recorder reads back: of each channel, its last description and what came after it. */
function readBack({ record }: Play): readonly Event[] {
  const events = eventsOf(record);
  return ["pods", "images"].flatMap((channel) => {
    const ofChannel = events.filter((event) => event.channel === channel);
    return ofChannel.slice(ofChannel.findLastIndex(({ kind }) => kind === "inventory.described"));
  });
}
