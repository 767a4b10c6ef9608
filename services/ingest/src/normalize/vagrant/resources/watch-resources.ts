import type { Event, ThingDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Look_Failed, Thing, Things_Kind } from "@tapedeck/proto/tapedeck/v1/look";
import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments } from "@tapedeck/shared/time/moment";
import { largestFrameBytes, recordedSha, shaOf } from "../../../record/frames/original.ts";
import type { Fact } from "../../fact.ts";
import { message, unreadable } from "../../facts.ts";
import { type ObservationTimes, observationTimes } from "../../inventory/observation-times.ts";
import type { ObservationOutcome, Watcher, WatchOptions } from "../../inventory/observing.ts";
import { type Accepted, type Description, describedResources, describeResources } from "./describe-resources.ts";
import { addedFact, type Circumstances, changedFact, removedFact } from "./resource-facts.ts";
import {
  decodeResource,
  messageTypeOf,
  pluralOf,
  type Resource,
  type ResourceKind,
  resourceKinds,
} from "./resource-kinds.ts";

/** Those of events are no longer than 1,000 characters, and who resumes knows things by these. */
const longestId = 200;
/** What an entry may take more in a description than when it was answered. */
const describedBytes = 16 * 1024;

type Frame = Extract<ObservationOutcome, { what: "frame" }>;

type Known = Accepted & {
  /** As answered last, before masking: equal bytes tell nothing. Absent: known from the log. */
  readonly raw?: Uint8Array;
};

/** What is remembered of one kind of things. */
type Memory = {
  readonly kind: ResourceKind;
  readonly looked: ObservationTimes;
  /** By id, in the upstream's order; undefined before the first look at this kind, which is taken as it is. */
  things: Map<string, Known> | undefined;
  /** SHA-256 of entries that were told to be unreadable, and are still there. */
  broken: Set<string>;
  /** A look since the connection began had all of it, so `same` says something. */
  isListed: boolean;
  /** Why nobody could look since the last good look. */
  gap: string | undefined;
};

/**
 * Watches channel "things". A whole look at a kind is believed: what it misses is gone, what is new or differs is told.
 * `runningCommand`: the command job that runs on a project (by resource_id) now.
 */
export function watchResources(
  { mask, frameBytes = largestFrameBytes }: WatchOptions,
  runningCommand: (project: string) => string | undefined,
  { describeAfter = 1_000 }: { readonly describeAfter?: number } = {},
): Watcher {
  const memories = resourceKinds.map(newMemory);
  const memoryOf = (kind: string) => memories.find((memory) => memory.kind === kind);
  /** By project and name: which target was removed last. Who resumes knows of those since the last description. */
  const removedTargets = new Map<string, string>();
  let eventsSince = 0;

  function told(fact: Fact, observedAt: Moment, original?: Frame["original"]): Frame {
    return { what: "frame", ...(original && { original }), facts: [fact], observedAt };
  }

  function circumstances({ kind, looked }: Memory, { id, parent_id }: ThingDetail, at: Moment): Circumstances {
    const job = kind === "target" ? runningCommand(parent_id) : kind === "project" ? runningCommand(id) : undefined;
    return { after: looked.before(at), job };
  }

  function judge(memory: Memory, { id, bytes }: Thing, at: Moment): Judgement {
    const before = memory.things?.get(id);
    if (before?.raw !== undefined && Buffer.compare(before.raw, bytes) === 0) return { known: before };
    const type = messageTypeOf(memory.kind);
    const original = { type, ...mask(type, bytes) };
    try {
      if (id === "" || id.length > longestId) throw new Error(`its id has ${id.length} characters`);
      if (bytes.byteLength > frameBytes - describedBytes) throw new Error("the log takes no such large one");
      const now = decodeResource(memory.kind, id, original.bytes);
      const fact = memory.things && newsOf(memory, before, now, at);
      // Copies, so that no whole look is kept for them.
      const [raw, masked] = [Uint8Array.from(bytes), Uint8Array.from(original.bytes)];
      const known = { raw, bytes: masked, redacted: original.redacted };
      return { known, ...(fact && { frame: told(fact, at, original) }) };
    } catch (cause) {
      const sha = shaOf(original.bytes);
      const isTold = memory.broken.has(sha);
      // What was known of it stays, and it is there.
      return { known: before, sha, ...(!isTold && { frame: told(unreadable(bytes, cause), at, original) }) };
    }
  }

  function newsOf(memory: Memory, before: Known | undefined, now: Resource, at: Moment): Fact | undefined {
    const { id } = now.detail;
    const around = circumstances(memory, now.detail, at);
    if (before !== undefined) return changedFact(decodeResource(memory.kind, id, before.bytes), now, around);
    const place = placeOf(now.detail);
    const replaced = removedTargets.get(place);
    removedTargets.delete(place);
    return addedFact(now, replaced === id ? undefined : replaced, around);
  }

  function noteRemoved(detail: ThingDetail): void {
    if (detail.kind === "target") removedTargets.set(placeOf(detail), detail.id);
  }

  function remove(memory: Memory, id: string, { bytes }: Known, at: Moment): Frame {
    const thing = decodeResource(memory.kind, id, bytes);
    noteRemoved(thing.detail);
    return told(removedFact(thing, circumstances(memory, thing.detail, at)), at);
  }

  function whole(memory: Memory, { entries, missing }: Things_Kind, at: Moment): readonly Frame[] {
    const listed = new Map(entries.map((entry) => [entry.id, entry]));
    // Of runners there is no list: one that is not looked at any more, as no job of late names it, is forgotten.
    const isGone = (id: string) => (memory.kind === "runner" ? missing.includes(id) : !listed.has(id));
    const gone = [...(memory.things ?? [])].filter(([id]) => isGone(id));
    const seen = gone.map(([id, known]) => remove(memory, id, known, at));
    const things = new Map<string, Known>();
    const broken = new Set<string>();
    for (const entry of listed.values()) {
      const { known, frame, sha } = judge(memory, entry, at);
      if (known) things.set(entry.id, known);
      if (frame) seen.push(frame);
      if (sha) broken.add(sha);
    }
    memory.things = things;
    memory.broken = broken;
    memory.isListed = true;
    return seen;
  }

  function outage(reason: string, kinds: readonly Memory[]): void {
    for (const memory of kinds) if (memory.things !== undefined) memory.gap ??= reason;
  }

  function closeGaps(kinds: readonly Memory[], at: Moment): readonly ObservationOutcome[] {
    const closed = kinds.filter(({ gap }) => gap !== undefined);
    if (closed.length === 0) return [];
    const reason = [...new Set(closed.map(({ gap }) => gap))].join("; ");
    const after = earliest(closed.map(({ looked }) => looked.before(at)));
    for (const memory of closed) memory.gap = undefined;
    return [{ what: "gap", reason, after, until: at }];
  }

  function good(kinds: readonly Things_Kind[], at: Moment): readonly ObservationOutcome[] {
    const looks = kinds.flatMap((look) => {
      const memory = memoryOf(look.kind);
      return memory && (!look.same || memory.isListed) ? [{ memory, look }] : [];
    });
    const gaps = closeGaps(
      looks.map(({ memory }) => memory),
      at,
    );
    const news: Frame[] = [];
    /** Of what is described at the end of this look, and could not be read. */
    const late: Frame[] = [];
    let isFirst = false;
    for (const { memory, look } of looks) {
      const isNew = memory.things === undefined;
      isFirst ||= isNew;
      if (!look.same) (isNew ? late : news).push(...whole(memory, look, at));
      memory.looked.was(at);
    }
    eventsSince += news.length;
    const described = isFirst || eventsSince >= describeAfter ? describe(at) : [];
    eventsSince += late.length;
    return [...gaps, ...news, ...described, ...late];
  }

  function failed({ code, message: text }: Look_Failed): void {
    const named = memories.find(({ kind }) => text.startsWith(`${kind}:`));
    const [what, why] = named ? [pluralOf(named.kind), text.slice(named.kind.length + 1).trim()] : ["things", text];
    outage(message(`the ${what} could not be looked at: ${why || `code ${code}`}`), named ? [named] : memories);
  }

  function describe(at: Moment): readonly Frame[] {
    const known = memories.flatMap(({ kind, things, looked }) =>
      things === undefined ? [] : [{ kind, entries: things, looked }],
    );
    eventsSince = 0;
    return describeResources(known, earliest(known.map(({ looked }) => looked.before(at))), at);
  }

  function resumeDescription(event: Event, { part, kinds }: Description): void {
    eventsSince = 0;
    if (part === 0) for (const memory of memories) memory.things = undefined;
    for (const { kind, entries } of kinds) {
      const memory = memoryOf(kind);
      if (memory === undefined) continue;
      memory.things ??= new Map();
      for (const { id, bytes } of entries) memory.things.set(id, { bytes, redacted: 0 });
      // Of kinds that were looked at less lately than others, it tells what was so then.
      sawAt(memory, event.not_before ?? event.observed_at);
    }
  }

  function resumeThing(event: Event, detail: ThingDetail): void {
    const memory = memoryOf(detail.kind);
    // Without a description it is not known what else there was: the next look is taken as it is.
    if (memory?.things === undefined) return;
    sawAt(memory, event.observed_at);
    if (event.original !== undefined) {
      memory.things.set(detail.id, { bytes: event.original.bytes, redacted: event.redacted });
      removedTargets.delete(placeOf(detail));
    } else {
      memory.things.delete(detail.id);
      noteRemoved(detail);
    }
  }

  function resumeUnreadable(original: NonNullable<Event["original"]>): void {
    memories.find(({ kind }) => messageTypeOf(kind) === original.type)?.broken.add(recordedSha(original));
  }

  return {
    observe(_, { seen }, at) {
      if (seen?.$case === "things") return good(seen.value.kinds, at);
      if (seen?.$case === "failed") failed(seen.value);
      return [];
    },
    connected() {
      for (const memory of memories) memory.isListed = false;
      outage("nobody looked at the server's things", memories);
    },
    resume(event) {
      const description = describedResources(event);
      if (description !== undefined) return resumeDescription(event, description);
      eventsSince += 1;
      if (event.detail?.$case === "thing") resumeThing(event, event.detail.value);
      else if (event.kind === "upstream.unreadable" && event.original) resumeUnreadable(event.original);
    },
  };
}

type Judgement = {
  /** What is to be remembered of it: nothing if it could never be read. */
  readonly known: Known | undefined;
  readonly frame?: Frame;
  /** Of an entry that can't be read. */
  readonly sha?: string;
};

function sawAt({ looked }: Memory, at: Moment | undefined): void {
  if (at !== undefined) looked.told(at, false);
}

function newMemory(kind: ResourceKind): Memory {
  return { kind, looked: observationTimes(), things: undefined, broken: new Set(), isListed: false, gap: undefined };
}

/** What stays of a target that is removed and made again. */
function placeOf({ kind, parent_id, name }: ThingDetail): string {
  return JSON.stringify([kind, parent_id, name]);
}

function earliest(moments: readonly (Moment | undefined)[]): Moment | undefined {
  return moments.flatMap((moment) => moment ?? []).sort(compareMoments)[0];
}
