import type { MetaEvent as V1MetaEvent } from "@tapedeck/proto/skaffold/v1/skaffold";
import type { MetaEvent, TaskEvent, Event as V2Event } from "@tapedeck/proto/skaffold/v2/skaffold";

// A Skaffold process makes a runner from its configuration, and another one when the configuration is edited.

/**
 * The runner that an event of v1 announces; undefined if it announces none. Before 1.9 there was no metadata, so the text
 * counts, too. A metaEvent that came through Handle has neither. `version` is "" if it isn't known.
 */
export function runnerMadeOnV1({
  entry,
  metadata,
}: Pick<V1MetaEvent, "entry" | "metadata">): { readonly version: string } | undefined {
  const started = /^Starting Skaffold: &\{Version:(\S*)/.exec(entry);
  return metadata === undefined && started === null ? undefined : { version: started?.[1] ?? "" };
}

/** The part of v2's history on which the meaning of its next event depends. Counts in the same way as v1's memory. */
export type V2Memory = {
  readonly runner: number;
  readonly loop: number;
  /** The runner's own id; "" if it isn't known. */
  readonly runId: string;
  /** The last event started a dev loop. */
  readonly loopJustStarted: boolean;
};

/** Before the first event of v2. */
export const startOfV2: V2Memory = { runner: 0, loop: 0, runId: "", loopJustStarted: false };

type V2EventType = NonNullable<V2Event["event_type"]>;

/** The memory after an event of v2. */
export function rememberV2(memory: V2Memory, event: V2EventType | undefined): V2Memory {
  if (event?.$case === "metaEvent") return { ...rememberRunner(memory, event.value), loopJustStarted: false };
  const loopJustStarted = event?.$case === "taskEvent" && startsLoop(event.value);
  return { ...memory, loopJustStarted, loop: memory.loop + (loopJustStarted ? 1 : 0) };
}

/**
 * A metaEvent announces a new runner, unless it is the one that repeats the metadata at the start of each loop. The
 * repeat has the runner's id; a server without ids (before 1.26) sends none.
 */
function rememberRunner(memory: V2Memory, { metadata }: MetaEvent): V2Memory {
  if (metadata === undefined) return memory;
  const { runID } = metadata;
  const isRepeat = runID !== "" && memory.runId !== "" ? runID === memory.runId : memory.loopJustStarted;
  return isRepeat
    ? { ...memory, runId: runID || memory.runId }
    : { ...memory, runner: memory.runner + 1, loop: 0, runId: runID };
}

/** Whether the event starts a dev loop. */
export function startsLoop({ task, status }: TaskEvent): boolean {
  return task === "DevLoop" && status === "InProgress";
}
