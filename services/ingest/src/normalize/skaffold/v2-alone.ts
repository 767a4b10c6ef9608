import { Event as V2Message } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Fact } from "../fact.ts";
import { failure } from "../facts.ts";
import type { FrameReader } from "../normalizer.ts";
import { errorOf } from "./facts.ts";
import { completed, readEvent, startOfV1, type V1Event, type V1Memory } from "./v1.ts";
import { v2 } from "./v2.ts";
import { fileSync, v1EventOf } from "./v2-as-v1.ts";

type V2Event = NonNullable<V2Message["event_type"]>;
type Err = NonNullable<Extract<V2Event, { $case: "taskEvent" }>["value"]["actionableErr"]>;

/** A try of a sync. v2 has no events of it: its start is only printed, and its end is the next event. */
type Sync = { readonly image: string; readonly fileCount: number };

type Memory = {
  readonly v2: typeof v2.start;
  readonly v1: V1Memory;
  /** v2's own number of the loop. */
  readonly iteration: number;
  readonly sync: Sync | undefined;
  /** Failed tries in this loop of a sync whose start was not printed. */
  readonly unnamedTries: number;
};

/** Skaffold gives up a sync after as many. */
const maxTries = 4;

/**
 * Reads v2 where v1 is not recorded, as in an imported event log of v2 alone: an event is read as the one with which v1
 * reports the same, so loops and steps are those that both together would give.
 */
export function v2AloneReader(): FrameReader {
  let memory: Memory = { v2: v2.start, v1: startOfV1, iteration: 0, sync: undefined, unnamedTries: 0 };
  const read = (bytes: Uint8Array, injected: boolean) => {
    const reading = new Reading(memory, bytes, injected);
    memory = reading.after();
    return reading.facts();
  };
  return {
    read: (bytes, injected = false) => read(bytes, injected),
    resume({ part, original, injected }) {
      if (part === 0 && original !== undefined && original.bytes.length > 0) read(original.bytes, injected);
    },
  };
}

/** The reading of one frame. */
class Reading {
  readonly #facts: Fact[] = [];
  readonly #injected: boolean;
  readonly #at: Event["occurred_at"];
  #memory: Memory;

  constructor(memory: Memory, bytes: Uint8Array, injected: boolean) {
    const { memory: next, fact } = v2.read(memory.v2, bytes, injected);
    this.#memory = { ...memory, v2: next };
    this.#injected = injected;
    this.#at = fact.occurredAt;
    const event = decoded(bytes);
    if (event === undefined) this.#add(fact);
    else if (event.$case === "skaffoldLogEvent") this.#text(fact, event.value.message);
    else this.#event(event, fact, next.runner > memory.v2.runner);
  }

  after(): Memory {
    return this.#memory;
  }

  facts(): readonly [Fact, ...Fact[]] {
    const [first, ...others] = this.#facts;
    if (first === undefined) throw new Error("a frame has a fact");
    return [first, ...others];
  }

  #text(fact: Fact, text: string): void {
    this.#add(fact);
    const sync = printedSync(text);
    if (sync === undefined) return;
    this.#syncSucceeded();
    this.#memory = { ...this.#memory, sync };
    this.#v1(fileSync({ ...sync, status: "In Progress", actionableErr: undefined }));
  }

  #event(event: V2Event, fact: Fact, makesRunner: boolean): void {
    if (event.$case === "taskEvent") this.#endSync(event.value);
    const same = event.$case === "metaEvent" && !makesRunner ? undefined : v1EventOf(event);
    if (fact.kind !== "mirror.received" || same === undefined) this.#add(fact);
    else if (same.$case === "devLoopEvent") this.#loop(same, fact);
    else this.#v1(same, fact);
  }

  /** v1 counts the loops of a runner from 0, and v2 those of the process from 1. */
  #loop(event: Extract<V1Event, { $case: "devLoopEvent" }>, mirror: Fact): void {
    const { iteration, status } = event.value;
    const { v1 } = this.#memory;
    const starts = status === "In Progress";
    if (starts) this.#memory = { ...this.#memory, iteration, sync: undefined, unnamedTries: 0 };
    const isOfThis = iteration === this.#memory.iteration;
    const own = starts ? v1.loop : isOfThis ? v1.iteration : v1.iteration + 1;
    this.#v1({ $case: "devLoopEvent", value: { ...event.value, iteration: own } }, mirror);
  }

  /** The end of the sync that was tried, as the next event of a task shows it. */
  #endSync({ task, status, actionableErr }: Extract<V2Event, { $case: "taskEvent" }>["value"]): void {
    const { sync, v1 } = this.#memory;
    if (task !== "DevLoop" || status !== "Failed") this.#syncSucceeded();
    else if (sync !== undefined && sync.image !== "") this.#syncEnded(sync, "Failed", actionableErr);
    else if (v1.steps.failing.size === 0 || sync !== undefined) this.#unnamedFailed(actionableErr);
  }

  #syncSucceeded(): void {
    const { sync } = this.#memory;
    if (sync === undefined) return;
    this.#syncEnded(sync, "Succeeded", undefined);
  }

  #syncEnded(sync: Sync, status: "Succeeded" | "Failed", actionableErr: Err | undefined): void {
    this.#memory = { ...this.#memory, sync: undefined };
    const end = fileSync({ ...sync, status, actionableErr });
    if (sync.image !== "") {
      this.#v1(end);
      return;
    }
    // Each try is a step of its own only if it has a start.
    this.#v1(fileSync({ ...sync, status: "In Progress", actionableErr: undefined }), undefined, "sync started");
    this.#v1(end, undefined, status === "Failed" ? failure("sync", errorOf(actionableErr)) : "files synced");
  }

  /** The code alone shows that it was a sync. */
  #unnamedFailed(actionableErr: Err | undefined): void {
    if (errorOf(actionableErr)?.code.startsWith("SYNC_") !== true) return;
    const unnamed = { image: "", fileCount: 0 };
    this.#syncEnded(unnamed, "Failed", actionableErr);
    const unnamedTries = this.#memory.unnamedTries + 1;
    this.#memory = { ...this.#memory, unnamedTries, sync: unnamedTries < maxTries ? unnamed : undefined };
  }

  /** Adds v1's fact of an event; `mirror` where v1 gives none. */
  #v1(event: V1Event, mirror?: Fact, summary?: string): void {
    const reading = readEvent(this.#memory.v1, event, { isAlone: true });
    const { memory, fact, cause } = completed(reading, this.#at, this.#injected);
    this.#memory = { ...this.#memory, v1: memory };
    if (cause !== undefined) this.#facts.push(cause);
    const own = fact.kind === "mirror.received" && mirror !== undefined ? mirror : fact;
    this.#facts.push(summary === undefined ? own : { ...own, summary });
  }

  #add(fact: Fact): void {
    const { memory } = completed({ memory: this.#memory.v1, fact }, this.#at, this.#injected);
    this.#memory = { ...this.#memory, v1: memory };
    this.#facts.push(fact);
  }
}

function decoded(bytes: Uint8Array): V2Event | undefined {
  try {
    return V2Message.decode(bytes).event_type;
  } catch {
    return undefined;
  }
}

const colours = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g");

/** "Syncing 2 files for web:abc" */
function printedSync(text: string): Sync | undefined {
  const [, files, image] = /^Syncing (\d{1,9}) files for (\S+)\s*$/.exec(text.replaceAll(colours, "")) ?? [];
  return image === undefined ? undefined : { image, fileCount: Number(files) };
}
