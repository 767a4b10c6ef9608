import { type App, Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { acceptPod, hasEnded } from "@tapedeck/shared/rkt/accept";
import { podEntries } from "@tapedeck/shared/rkt/entries";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import type { FrameOutcome, Judgement, Sighting } from "../../inventory/inventory-rules.ts";
import type { HostRules } from "../host-rules.ts";
import { type Doubt, doubtOf, isFalseAbort } from "./pod-doubts.ts";
import { podChanged, podContradicted, podFacts } from "./pod-facts.ts";
import { type Last, stateOf } from "./pod-table.ts";

/** The memory of a pod: in the log, except for what is held. */
export type PodMemory = {
  /** The pod as accepted last; undefined while its first answer is held. */
  readonly pod: Pod | undefined;
  readonly redacted: number;
  /** The pod is recorded as gone. It may turn out that it was not. */
  readonly isRemoved: boolean;
  /** The exits, and the collection, are recorded, whatever state the pod may come back in. */
  readonly ended: boolean;
  readonly collected: boolean;
  /** Only the id is known of a pod that was gone before the last description. If it comes back, no fact is recorded again. */
  readonly buried: boolean;
  /** The last answer, if it is not believed yet. */
  readonly held?: Held | undefined;
  /** Answers that can't be, by the table: how many in a row, when last, and the observation before the first. */
  readonly denied?:
    | { readonly inARow: number; readonly at: Timestamp; readonly after: Timestamp | undefined }
    | undefined;
};

/** After this many equal answers in a row the host is believed, even against what should be possible. */
const answersToAdmit = 3;

type Held = { readonly doubt: Doubt; readonly sighting: Sighting; readonly listed: Pod };

const unknown: PodMemory = {
  pod: undefined,
  redacted: 0,
  isRemoved: false,
  ended: false,
  collected: false,
  buried: false,
};
const buried: PodMemory = { ...unknown, isRemoved: true, ended: true, collected: true, buried: true };
const entryType = "v1alpha.Pod";

export const pods: HostRules<PodMemory> = {
  channel: "pods",
  noun: "pod",
  listType: "v1alpha.ListPodsResponse",
  answerType: "v1alpha.InspectPodResponse",
  entryType,
  entries: podEntries,
  isConclusive: false,
  adopt: ({ bytes, redacted }) => ({ ...unknown, pod: acceptPod(undefined, Pod.decode(bytes)), redacted }),
  judge(memory = unknown, sighting) {
    const listed = Pod.decode(sighting.bytes);
    return memory.held === undefined
      ? judgeAfresh(memory, sighting, listed)
      : settle(memory, memory.held, sighting, listed);
  },
  isHeld: ({ held, denied }) => held !== undefined || denied !== undefined,
  isPresent: ({ pod, isRemoved, held }) => held !== undefined || (pod !== undefined && !isRemoved),
  missed(memory) {
    const { held } = memory;
    if (held === undefined) return { memory, outcomes: [] };
    const wasReal = held.doubt !== "dead" && !isFalseAbort(held.listed);
    return wasReal ? accept(memory, held.sighting, held.listed) : remain(memory);
  },
  lost(memory, times, inferred) {
    const { pod } = memory;
    if (pod === undefined) return { memory: undefined, outcomes: [] };
    const found = podFacts({ ...times, last: lastOf(memory), before: pod, to: "absent", now: pod }) ?? [];
    const facts = unrecorded(memory, found).map((fact) => (inferred ? { ...fact, inferred } : fact));
    // Only a collection, or this fact, reports that the pod is gone.
    const isReported = facts.some(({ kind }) => kind === "pod.collected");
    const removal = podChanged(pod, "is gone", { removed: true });
    const [first = removal, ...rest] = isReported ? facts : [...facts, removal];
    const frame: FrameOutcome = { what: "frame", facts: [first, ...rest], observedAt: times.at };
    return {
      memory: { ...afterFacts(memory, frame.facts), isRemoved: true, buried: false, held: undefined },
      outcomes: [frame],
    };
  },
  meaningOfError: ({ code, message }) => (code === 2 && message === "unable to get pod" ? "there" : "nothing"),
  accepted: ({ pod, redacted, isRemoved }) =>
    pod === undefined || isRemoved ? undefined : { bytes: Pod.encode(pod).finish(), redacted },
  mark(memory) {
    if (memory.isRemoved) return memory.buried ? undefined : "gone";
    const last = lastOf(memory);
    return memory.collected && last !== "GARBAGE" && last !== "UNDEFINED" ? "returned" : undefined;
  },
  marked: (mark, listed) => (mark === "gone" ? buried : listed && { ...listed, ended: true, collected: true }),
  described(memory) {
    const { pod, redacted, isRemoved, held, denied } = memory;
    const mark = pods.mark(memory);
    if (mark === "gone") return { ...buried, held };
    if (pod === undefined || isRemoved) return held && { ...unknown, held };
    const result: PodMemory = { ...unknown, pod, redacted, held, denied };
    return mark === undefined ? result : pods.marked(mark, result);
  },
  known: (accepted) => ({ ...unknown, pod: Pod.decode(accepted) }),
  subject: ({ detail }) => (detail?.$case === "pod" || detail?.$case === "app" ? detail.value.pod : undefined),
  resume,
};

function judgeAfresh(memory: PodMemory, sighting: Sighting, listed: Pod): Judgement<PodMemory> {
  const isNews = memory.isRemoved || !isSame(memory.pod, acceptPod(memory.pod, listed));
  const doubt = isNews ? doubtOf(lastOf(memory), memory.pod, listed) : undefined;
  return doubt === undefined
    ? accept(memory, sighting, listed)
    : { memory: { ...memory, held: { doubt, sighting, listed }, denied: undefined }, outcomes: [] };
}

/** Judges the second answer about a held pod, which settles the first. */
function settle(memory: PodMemory, first: Held, sighting: Sighting, listed: Pod): Judgement<PodMemory> {
  const again = stateOf(listed) === stateOf(first.listed);
  const open = { ...memory, held: undefined };
  const both = () => {
    const step = accept(open, first.sighting, first.listed, (accepted) => completed(accepted, first.listed, listed));
    const next = judgeAfresh(step.memory ?? unknown, sighting, listed);
    return { memory: next.memory, outcomes: [...step.outcomes, ...next.outcomes] };
  };
  switch (first.doubt) {
    case "aborted":
      return again ? both() : judgeAfresh(open, sighting, listed);
    case "dead":
      return again ? accept(open, sighting, listed) : judgeAfresh(open, sighting, listed);
    case "starting":
      return again && listed.started_at > 0n ? accept(open, sighting, listed) : both();
    case "exit code":
      return both();
  }
}

/** The pod of the first answer, with what only the second has: the start time, exit codes. */
function completed(accepted: Pod, first: Pod, second: Pod): Pod {
  const codeIn = (pod: Pod, { name }: App) => pod.apps.find((app) => app.name === name)?.exit_code ?? 0;
  const apps = accepted.apps.map((app) => {
    if (app.exit_code !== 0 || !hasEnded(first) || !hasEnded(second)) return app;
    const code = codeIn(second, app);
    // An unreadable code is believed only if two answers agree: then the code itself is -1.
    return { ...app, exit_code: code === -1 && codeIn(first, app) !== -1 ? 0 : code };
  });
  return { ...accepted, apps, started_at: accepted.started_at || second.started_at };
}

function accept(
  memory: PodMemory,
  sighting: Sighting,
  listed: Pod,
  complete = (accepted: Pod) => accepted,
): Judgement<PodMemory> {
  const { bytes, redacted, at, after } = sighting;
  const to = stateOf(listed);
  // A reader who folds the events has forgotten a pod that was gone.
  const pod = acceptPod(memory.isRemoved ? undefined : memory.pod, listed);
  const found = to && podFacts({ at, after, last: lastOf(memory), before: memory.pod, to, now: complete(pod) });
  if (found === undefined) return to === undefined ? remain(memory) : deny(memory, sighting, pod);
  const facts = memory.buried ? [] : unrecorded(memory, found);
  const next = { ...afterFacts(memory, facts), ...settled, pod, redacted };
  if (facts.length === 0 && !memory.isRemoved && isSame(memory.pod, pod)) return { memory: next, outcomes: [] };
  const [first = podChanged(pod, whatChanged(memory, pod)), ...rest] = facts;
  const original = { type: entryType, bytes, redacted };
  return { memory: next, outcomes: [{ what: "frame", original, facts: [first, ...rest], observedAt: at }] };
}

/** Flags of a pod that is believed to be present, as answered last. */
const settled = { isRemoved: false, buried: false, held: undefined, denied: undefined } as const;

/** A pod never goes back. A host that insists is believed nevertheless, and the record admits it. */
function deny(memory: PodMemory, { bytes, redacted, at, after }: Sighting, pod: Pod): Judgement<PodMemory> {
  const before = memory.denied;
  const isInARow = before !== undefined && (after === undefined || compareTimestamps(before.at, after) >= 0);
  const denied = isInARow ? { ...before, inARow: before.inARow + 1, at } : { inARow: 1, at, after };
  if (memory.pod === undefined || denied.inARow < answersToAdmit) {
    return { memory: { ...memory, held: undefined, denied }, outcomes: [] };
  }
  const fact = podContradicted(memory.pod, pod, { at, after: denied.after });
  const original = { type: entryType, bytes, redacted };
  const next = { ...afterFacts(memory, [fact]), ...settled, pod, redacted };
  return { memory: next, outcomes: [{ what: "frame", original, facts: [fact], observedAt: at }] };
}

/** The memory as it was before the answer. */
function remain(memory: PodMemory): Judgement<PodMemory> {
  return { memory: memory.pod && { ...memory, held: undefined, denied: undefined }, outcomes: [] };
}

function whatChanged({ pod: before, isRemoved }: PodMemory, pod: Pod): string {
  if (isRemoved) return "is there after all";
  return before === undefined && stateOf(pod) === "PREPARING" ? "is being prepared" : "changed";
}

/** Facts that are not recorded yet. A pod that comes back has its end recorded, and continues from its last state. */
function unrecorded({ ended, collected }: PodMemory, facts: ReturnType<typeof podFacts> & {}): typeof facts {
  return facts.filter(({ kind }) => {
    if (kind === "pod.collected") return !collected;
    return !(ended && (kind === "pod.exited" || kind === "app.exited" || kind === "app.started"));
  });
}

function afterFacts(memory: PodMemory, facts: readonly { readonly kind: string }[]): PodMemory {
  const has = (kind: string) => facts.some((fact) => fact.kind === kind);
  return {
    ...memory,
    // The pod continues by the host's word, and its end is recorded again; a collected pod has no more facts.
    ended: has("pod.contradicted") ? memory.collected : memory.ended || has("pod.exited"),
    collected: memory.collected || has("pod.collected"),
  };
}

function lastOf({ pod }: PodMemory): Last {
  return (pod && stateOf(pod)) ?? "new";
}

function isSame(before: Pod | undefined, now: Pod): boolean {
  return before !== undefined && Buffer.compare(Pod.encode(before).finish(), Pod.encode(now).finish()) === 0;
}

function resume(memory: PodMemory = unknown, event: Event): PodMemory {
  const { kind, detail, original, redacted } = event;
  const listed = original?.type === entryType && original.bytes.length > 0 ? Pod.decode(original.bytes) : undefined;
  const before = memory.isRemoved ? undefined : memory.pod;
  const next = afterFacts(memory, [{ kind }]);
  if (listed !== undefined)
    return { ...next, pod: acceptPod(before, listed), redacted, isRemoved: false, buried: false };
  const isRemoved = detail?.$case === "pod" && (detail.value.removed || detail.value.last_state !== "");
  return isRemoved ? { ...next, isRemoved: true } : next;
}
