import { PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Host } from "../../harness/rkt-harness.ts";
import type { RecordedFact } from "./recorded-facts.ts";

type ObservedAt = Pick<Host, "name" | "pods" | "observations">;

/**
 * Returns what must be recorded of a host while ingest is killed, given the undisturbed record. One answer does not
 * prove that a preparation was given up, so ingest holds it back until the next one, and loses it when it is killed
 * (docs/decisions/0006-facts-are-concluded-from-observations.md). If every ingest was killed before recording the
 * answer that would have proved it, the pod was being prepared, and then it was gone: no more can be known, and its
 * removal is inferred. Any other fact is proved by an answer that the next ingest gets again.
 */
export function knowableFacts(
  calm: readonly RecordedFact[],
  wild: readonly RecordedFact[],
  host: ObservedAt,
): readonly RecordedFact[] {
  const isRecorded = (pod: string) => wild.some(({ item, lasting }) => item === pod && isAbort(lasting.kind));
  const isUnknown = ({ item }: RecordedFact) => !isRecorded(item) && !wasProved(item, host);
  const unknown = new Set(calm.filter((fact) => isAbort(fact.lasting.kind) && isUnknown(fact)).map(({ item }) => item));
  for (const pod of unknown) console.log(`${host.name}: no ingest could prove that ${pod} was given up`);
  return calm.flatMap((fact) => {
    if (!unknown.has(fact.item)) return [fact];
    return isAbort(fact.lasting.kind) ? [] : [withoutAbort(fact)];
  });
}

/**
 * The same ingest observed that the preparation was given up and then, recorded too, that it still is or that the pod
 * is gone.
 */
function wasProved(pod: string, host: ObservedAt): boolean {
  return host.observations.recordedPairs.some(([one, next]) => {
    const after = stateIn(host, next, pod);
    return stateIn(host, one, pod) === aborted && (after === aborted || after === "absent");
  });
}

const aborted = PodState.POD_STATE_ABORTED_PREPARE;

function stateIn({ pods }: ObservedAt, row: number, id: string): PodState | "absent" | "failed" {
  const poll = pods[row - 1];
  if (poll === undefined || poll.error !== undefined) return "failed";
  return poll.items.find((pod) => pod.id === id)?.state ?? "absent";
}

function isAbort(kind: Event["kind"]): boolean {
  return kind === "pod.prepare_aborted";
}

/** Returns the removal of a pod of which only the preparation is known. */
function withoutAbort(fact: RecordedFact): RecordedFact {
  const { lasting } = fact;
  if (lasting.kind !== "pod.collected" || lasting.detail?.$case !== "pod") return fact;
  const state = "PREPARING";
  const value = { ...lasting.detail.value, state, last_state: state, phase: "removed" };
  const summary = lasting.summary.replace(/ and never ran$/, "");
  return { ...fact, lasting: { ...lasting, inferred: true, summary, detail: { $case: "pod", value } } };
}
