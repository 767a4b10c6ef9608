import type { Look, Look_One } from "@tapedeck/proto/tapedeck/v1/look";
import type { Entry } from "@tapedeck/shared/rkt/entries";
import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments, msBetween } from "@tapedeck/shared/time/moment";
import { largestFrameBytes } from "../../record/frames/original.ts";
import { unreadable } from "../facts.ts";
import { observationTimes } from "../inventory/observation-times.ts";
import type { ObservationOutcome, Observed, Watcher, WatchOptions, YieldPoint } from "../inventory/observing.ts";
import { yieldPoint } from "../inventory/observing.ts";
import type { Accepted, Mark } from "./describe-inventory.ts";
import { describing, descriptionIn } from "./describe-inventory.ts";
import type { Extinction } from "./extinction.ts";
import type { Frame, Step, Things } from "./inventory.ts";

export type ThingsOptions = Pick<WatchOptions, "mask" | "frameBytes"> & {
  readonly extinction: Extinction;
  /** Events of the channel after which it is described anew. */
  readonly describeAfter: number;
};

export type ThingsWatcher = Omit<Watcher, "observe"> & {
  readonly observe: (look: Look, at: Moment) => Observed;
  /** Something is known to be on the host. */
  readonly knowsSome: () => boolean;
};

type Telling = Generator<ObservationOutcome | YieldPoint, void>;

/** Those of events are no longer than 1,000 characters, and who resumes knows things by these. */
const longestId = 200;
/** What an entry may take more in a description than when it was listed. */
const describedBytes = 16 * 1024;
/** While everything is gone no more than this counts between two looks: a clock that is set is no while of looking. */
const longestPauseMs = 60_000;

/** What is remembered of a pod or image by its id. */
type Known<Memory> = {
  /** Undefined: it can't be read, or says nothing that is believed. */
  memory: Memory | undefined;
  /** As answered last, before masking: equal bytes tell nothing. A copy, so that no whole answer is kept for it. */
  raw?: Uint8Array | undefined;
  /** The first look that missed it, the one before that, and how many missed it in a row, without a failure between. */
  missing?: { readonly at: Moment; readonly after: Moment | undefined; readonly inARow: number } | undefined;
  /** The connection in which it was first seen, and the look that saw it last. */
  readonly since: number;
  seenIn: number;
  /** It was so when an event told it, and is known from that alone: later looks may have seen otherwise without a word. */
  asOf?: Moment | undefined;
};

/**
 * Watches one channel: what is there, by its bytes; what is missing, by two looks in a row; when nobody could look; and
 * what can't be read. How a single thing is judged is `things`' business. Work is linear in the entries of a look, and
 * an entry is decoded only if its bytes changed.
 */
export function watchThings<Memory>(
  things: Things<Memory>,
  { mask, extinction, describeAfter, frameBytes = largestFrameBytes }: ThingsOptions,
): ThingsWatcher {
  const { channel, noun } = things;
  const known = new Map<string, Known<Memory>>();
  const looked = observationTimes();
  let connection = 0;
  let looks = 0;
  let isDescribed = false;
  /** What was resumed from is the description of the first look of all. */
  let isFirst = false;
  /** Named so by the description that is being resumed from. */
  let returned: ReadonlySet<string> = new Set();
  let eventsSince = 0;
  /** Why nobody could look since the last good one. */
  let gap: string | undefined;
  /** The last whole answer of this connection, which `same` is about. */
  let listed: readonly Entry[] | undefined;
  let broken: Uint8Array | undefined;

  const isThere = ({ memory }: Known<Memory>) => memory !== undefined && things.isThere(memory);

  function outage(reason: string): void {
    if (!isDescribed) return;
    gap ??= reason;
    for (const entry of known.values()) if (entry.missing) entry.missing = { ...entry.missing, inARow: 0 };
  }

  function closeGap(at: Moment): readonly ObservationOutcome[] {
    const reason = gap;
    gap = undefined;
    return reason === undefined ? [] : [{ what: "gap", reason, after: looked.before(at), until: at }];
  }

  /** The last look before this moment that is known to have seen it as it is remembered. */
  function seenBefore({ asOf }: Known<Memory>, at: Moment): Moment | undefined {
    if (asOf === undefined) return looked.sureBefore(at);
    return compareMoments(asOf, at) < 0 ? asOf : undefined;
  }

  /** Remembers and gives what a step tells. */
  function take(id: string, entry: Known<Memory>, { memory, seen }: Step<Memory>): readonly Frame[] {
    entry.memory = memory;
    eventsSince += seen.reduce((sum, { facts }) => sum + facts.length, 0);
    known.set(id, entry);
    return seen;
  }

  function cannotRead(type: string, bytes: Uint8Array, cause: unknown, observedAt: Moment): Frame {
    const original = { type, ...mask(type, bytes) };
    eventsSince += 1;
    return { what: "frame", original, facts: [unreadable(bytes, cause)], observedAt };
  }

  function judge({ id, bytes }: Entry, at: Moment, begin = false): readonly Frame[] {
    const entry = known.get(id) ?? { memory: undefined, since: connection, seenIn: looks };
    entry.raw = Uint8Array.from(bytes);
    known.set(id, entry);
    const sighting = { id, ...mask(things.entryType, bytes), at, after: seenBefore(entry, at) };
    entry.asOf = undefined;
    try {
      if (id.length > longestId) throw new Error(`its id has ${id.length} characters`);
      if (bytes.byteLength > frameBytes - describedBytes) throw new Error("the log takes no such large one");
      const step = begin ? { memory: things.begin(sighting), seen: [] } : things.see(entry.memory, sighting);
      return take(id, entry, step);
    } catch (cause) {
      // What was known of it stays, and it is there.
      return [cannotRead(things.entryType, bytes, cause, at)];
    }
  }

  function* good(entries: readonly Entry[], at: Moment): Telling {
    looks += 1;
    if (!isDescribed) return yield* firstLook(entries, at);
    const last = gap === undefined ? looked.before(at) : undefined;
    const ms = last === undefined ? 0 : Math.min(msBetween(last, at), longestPauseMs);
    yield* closeGap(at);
    let knowsSome = false;
    for (const one of entries) {
      yield yieldPoint;
      const entry = known.get(one.id);
      if (entry !== undefined) {
        if (entry.seenIn === looks) continue;
        entry.seenIn = looks;
        entry.missing = undefined;
        knowsSome ||= entry.since < connection && isThere(entry);
        const isHeld = entry.memory !== undefined && things.isHeld(entry.memory);
        if (!isHeld && entry.raw !== undefined && Buffer.compare(entry.raw, one.bytes) === 0) continue;
      }
      yield* judge(one, at);
    }
    extinction.looked(channel, { entries: entries.length, knowsSome, ms });
    yield* missed(at);
    looked.was(at);
  }

  function* firstLook(entries: readonly Entry[], at: Moment): Telling {
    isDescribed = true;
    const seen: Frame[] = [];
    for (const entry of entries) {
      seen.push(...judge(entry, at, true));
      yield yieldPoint;
    }
    looked.was(at);
    yield* describe(at);
    eventsSince = seen.length;
    yield* seen;
  }

  function* missed(at: Moment): Telling {
    const absent = [...known].filter(([, entry]) => entry.seenIn !== looks);
    for (const [id, entry] of absent.sort(byId)) {
      if (isThere(entry)) yield* missOne(id, entry, at);
      else if (entry.memory === undefined) known.delete(id);
      yield yieldPoint;
    }
    const verdict = extinction.verdict(channel);
    if (verdict === "held") return;
    const lost = absent.filter(([, entry]) => isThere(entry) && (entry.missing?.inARow ?? 0) >= 2);
    if (verdict === "certain" && lost.length > 0) {
      extinction.told(channel);
      yield allGone(lost, at);
    }
    for (const [id, entry] of lost) yield* lose(id, entry, verdict === "certain");
  }

  function missOne(id: string, entry: Known<Memory>, at: Moment): readonly Frame[] {
    const { missing, memory } = entry;
    entry.missing = { at, after: seenBefore(entry, at), ...missing, inARow: (missing?.inARow ?? 0) + 1 };
    // What was held may be dropped, so the same bytes would be news.
    entry.raw = undefined;
    if (missing !== undefined || memory === undefined) return [];
    return take(id, entry, things.missed(memory));
  }

  function lose(id: string, entry: Known<Memory>, inferred: boolean): readonly Frame[] {
    const { memory, missing } = entry;
    if (memory === undefined || missing === undefined) return [];
    entry.missing = undefined;
    return take(id, entry, things.lost(memory, missing, inferred));
  }

  function allGone(lost: readonly (readonly [string, Known<Memory>])[], at: Moment): ObservationOutcome {
    const after = lost.flatMap(([, { missing }]) => missing?.after ?? []).sort(compareMoments)[0];
    return { what: "gap", reason: `all ${noun}s were gone at once`, after, until: at };
  }

  function askedFor(one: Look_One, at: Moment): readonly ObservationOutcome[] {
    const entry = known.get(one.id);
    // Of what is new, or gone, the lists tell.
    if (entry === undefined || !isThere(entry)) return [];
    if (one.code !== 0) {
      const says = entry.missing === undefined ? "nothing" : things.errorSays(one);
      if (says === "there") entry.missing = undefined;
      return says === "gone" && extinction.verdict(channel) === "none" ? lose(one.id, entry, false) : [];
    }
    const answered = things.entries(one.bytes);
    if (answered === undefined) return [cannotRead(things.answerType, one.bytes, "no such message", at)];
    const found = answered.find(({ id }) => id === one.id);
    if (found === undefined) return [];
    entry.missing = undefined;
    if (entry.since < connection) extinction.looked(channel, { entries: 1, knowsSome: true, ms: 0 });
    return judge(found, at);
  }

  function whole(bytes: Uint8Array, at: Moment): Observed {
    const entries = things.entries(bytes);
    listed = entries?.every(({ id }) => id !== "") ? entries : undefined;
    if (listed !== undefined) return good(listed, at);
    outage(`a list of ${noun}s could not be read`);
    if (broken !== undefined && Buffer.compare(broken, bytes) === 0) return [];
    broken = Uint8Array.from(bytes);
    return [cannotRead(things.listType, bytes, "no such message", at)];
  }

  function* describe(at: Moment): Telling {
    const accepted: Accepted[] = [];
    const marks: Record<Mark, string[]> = { gone: [], returned: [] };
    for (const [id, entry] of [...known].sort(byId)) {
      yield yieldPoint;
      if (entry.memory === undefined) continue;
      const one = things.accepted(entry.memory);
      if (one !== undefined) accepted.push(one);
      const mark = things.mark(entry.memory);
      if (mark !== undefined) marks[mark].push(id);
      entry.memory = things.described(entry.memory);
      if (entry.memory === undefined) known.delete(id);
    }
    eventsSince = 0;
    yield* describing(noun, things.listType, accepted, marks, at);
  }

  function see({ seen }: Look, at: Moment): Observed {
    switch (seen?.$case) {
      case "all":
        return whole(seen.value, at);
      case "same":
        return listed === undefined ? [] : good(listed, at);
      case "one":
        return askedFor(seen.value, at);
      case "failed":
        outage(`the ${noun}s could not be listed: ${seen.value.message || `code ${seen.value.code}`}`);
        return [];
      default:
        return [];
    }
  }

  return {
    *observe(look, at) {
      yield* see(look, at);
      if (isDescribed && eventsSince >= describeAfter) yield* describe(at);
    },
    connected() {
      connection += 1;
      listed = undefined;
      outage(`nobody looked at the ${noun}s`);
    },
    knowsSome: () => [...known.values()].some(isThere),
    resume(event) {
      if (event.observed_at !== undefined) looked.told(event.observed_at, event.ordinal === 1n);
      const description = descriptionIn(event);
      if (description !== undefined) {
        if (description.part === 0) {
          known.clear();
          isFirst = event.ordinal === 1n;
          returned = new Set(description.returned);
          for (const id of description.gone) {
            known.set(id, { memory: things.marked("gone", undefined), since: connection, seenIn: 0 });
          }
        }
        isDescribed = true;
        eventsSince = 0;
        // What a later one describes may have been missing by then, or seen otherwise and not believed.
        const asOf = isFirst ? event.observed_at : undefined;
        for (const { id, bytes } of things.entries(event.original?.bytes ?? Buffer.alloc(0)) ?? []) {
          const listed = things.known(bytes);
          const memory = returned.has(id) ? things.marked("returned", listed) : listed;
          known.set(id, { memory, since: connection, seenIn: 0, asOf });
        }
        return;
      }
      eventsSince += 1;
      const id = things.subject(event);
      if (id === undefined) return;
      const entry = known.get(id);
      const memory = things.resume(entry?.memory, event);
      const asOf = event.observed_at;
      if (memory !== undefined) known.set(id, { memory, since: entry?.since ?? connection, seenIn: 0, asOf });
    },
  };
}

function byId([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
