import type { Event, HostDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Observation, Observation_One } from "@tapedeck/proto/tapedeck/v1/observation";
import { listOf } from "@tapedeck/shared/rkt/entries";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { msBetween } from "@tapedeck/shared/time/timestamp";
import { unreadable } from "../facts.ts";
import { describedInParts, descriptionIn } from "../inventory/description.ts";
import { DescriptionDue } from "../inventory/description-due.ts";
import { Inventory, type InventoryOptions } from "../inventory/inventory.ts";
import type { FrameOutcome, InventoryEntry } from "../inventory/inventory-rules.ts";
import type { ObservationOutcome, Observed, Outcomes } from "../inventory/observing.ts";
import { yieldPoint } from "../inventory/observing.ts";
import { Absences } from "./absences.ts";
import type { Extinction } from "./extinction.ts";
import type { Accepted, HostRules, Mark } from "./host-rules.ts";

export type HostChannelOptions = InventoryOptions & {
  readonly extinction: Extinction;
  /** Events of the channel after which it is described anew. */
  readonly describeAfter: number;
};

/** While everything is gone, at most this counts between two lists: a clock that is set is no time of observing. */
const longestDelayMs = 60_000;

/**
 * Observes one channel of a host: its lists, rkt's answers about an item that a list lacks, times without observations,
 * and unreadable input. The rules judge a single item.
 */
export class HostChannel<Memory> {
  readonly #rules: HostRules<Memory>;
  readonly #mask: InventoryOptions["mask"];
  readonly #extinction: Extinction;
  readonly #inventory: Inventory<Memory>;
  readonly #absences: Absences<Memory>;
  readonly #due: DescriptionDue;
  /** The last whole list of this connection, which `same` is about. */
  #listed: readonly InventoryEntry[] | undefined;
  /** The last list, where it could not be read. */
  #broken: Uint8Array | undefined;
  /** The description that is being resumed from is that of the first observation of all. */
  #isFirstDescription = false;
  /** Marked so by the description that is being resumed from. */
  #returned: ReadonlySet<string> = new Set();

  constructor(rules: HostRules<Memory>, { mask, frameBytes, extinction, describeAfter }: HostChannelOptions) {
    this.#rules = rules;
    this.#mask = mask;
    this.#extinction = extinction;
    this.#inventory = new Inventory(rules, { mask, ...(frameBytes !== undefined && { frameBytes }) });
    this.#absences = new Absences(rules, this.#inventory, extinction);
    this.#due = new DescriptionDue(describeAfter);
  }

  /** An item is known to be on the host. */
  get knowsSome(): boolean {
    return this.#inventory.hasPresentItems;
  }

  connected(): void {
    this.#inventory.connected();
    this.#listed = undefined;
    this.#outage(`the ${this.#rules.noun}s were not observed`);
  }

  *observe(observation: Observation, at: Timestamp): Outcomes {
    for (const outcome of this.#outcomesOf(observation, at)) {
      if (outcome.what !== "yield") this.#due.count(outcome);
      yield outcome;
    }
    if (this.#inventory.isKnown && this.#due.isDue(at)) yield* this.#describe(at);
  }

  resume(event: Event): void {
    const { observed_at, ordinal, single_item } = event;
    if (observed_at !== undefined && !single_item) this.#inventory.times.resume(observed_at, ordinal === 1n);
    this.#due.resume(event);
    const description = descriptionIn(event);
    if (description !== undefined) this.#resumeDescription(event, description);
    else this.#resumeItem(event);
  }

  #outcomesOf({ result }: Observation, at: Timestamp): Observed {
    switch (result?.$case) {
      case "all":
        return this.#list(result.value, at);
      case "same":
        return this.#listed === undefined ? [] : this.#compare(this.#listed, at);
      case "one":
        return this.#answer(result.value, at);
      case "failed": {
        const { message, code } = result.value;
        this.#outage(`the ${this.#rules.noun}s could not be listed: ${message || `code ${code}`}`);
        return [];
      }
      default:
        return [];
    }
  }

  #outage(reason: string): void {
    if (!this.#inventory.isKnown) return;
    this.#inventory.outage(reason);
    this.#absences.outage();
  }

  #list(bytes: Uint8Array, at: Timestamp): Observed {
    const entries = this.#rules.entries(bytes);
    this.#listed = entries?.every(({ id }) => id !== "") ? entries : undefined;
    if (this.#listed !== undefined) return this.#compare(this.#listed, at);
    this.#outage(`a list of ${this.#rules.noun}s could not be read`);
    if (this.#broken !== undefined && Buffer.compare(this.#broken, bytes) === 0) return [];
    this.#broken = Uint8Array.from(bytes);
    return [this.#unreadable(this.#rules.listType, bytes, at)];
  }

  *#compare(entries: readonly InventoryEntry[], at: Timestamp): Outcomes {
    const inventory = this.#inventory;
    if (!inventory.isKnown) return yield* this.#adopt(entries, at);
    const gap = inventory.closeGap(at);
    const last = gap === undefined ? inventory.times.before(at) : undefined;
    const ms = last === undefined ? 0 : Math.min(msBetween(last, at), longestDelayMs);
    if (gap !== undefined) yield { what: "gap", ...gap, until: at };
    yield* inventory.compare(entries, at);
    const knowsSome = inventory.isRecognized;
    this.#extinction.observed(this.#rules.channel, { entries: entries.length, knowsSome, ms });
    yield* this.#absences.listed(new Set(entries.map(({ id }) => id)), at);
    inventory.times.observed(at);
  }

  /** The first list of all is described, and what can't be read in it is recorded after that. */
  *#adopt(entries: readonly InventoryEntry[], at: Timestamp): Outcomes {
    const unreadables: FrameOutcome[] = [];
    for (const outcome of this.#inventory.compare(entries, at)) {
      if (outcome.what === "yield") yield outcome;
      else unreadables.push(outcome);
    }
    this.#inventory.times.observed(at);
    yield* this.#describe(at);
    yield* unreadables;
  }

  /** Judges rkt's answer about one item, requested because a list lacked it or could be wrong about it. */
  #answer(one: Observation_One, at: Timestamp): readonly ObservationOutcome[] {
    const { channel, entries, meaningOfError, answerType } = this.#rules;
    // New and gone items are left to the lists.
    if (!this.#inventory.isPresent(one.id)) return [];
    if (one.code !== 0) {
      const meaning = this.#absences.has(one.id) ? meaningOfError(one) : "nothing";
      if (meaning === "there") this.#absences.ended(one.id);
      const isRemoved = meaning === "gone" && this.#extinction.verdict(channel) === "none";
      return isRemoved ? this.#absences.believe(one.id, false) : [];
    }
    const answered = entries(one.bytes);
    if (answered === undefined) return [this.#unreadable(answerType, one.bytes, at)];
    const found = answered.find(({ id }) => id === one.id);
    if (found === undefined) return [];
    this.#absences.ended(one.id);
    if (this.#inventory.isFromBefore(one.id)) {
      this.#extinction.observed(channel, { entries: 1, knowsSome: true, ms: 0 });
    }
    const outcomes = this.#inventory.judge(found, at);
    this.#inventory.observedAlone(one.id, at);
    // What was held is recorded with the time of the list that showed it.
    return outcomes.map((outcome) => (outcome.observedAt === at ? { ...outcome, isSingleItem: true } : outcome));
  }

  #unreadable(type: string, bytes: Uint8Array, observedAt: Timestamp): FrameOutcome {
    const original = { type, ...this.#mask(type, bytes) };
    return { what: "frame", original, facts: [unreadable(bytes, "no such message")], observedAt };
  }

  *#describe(at: Timestamp): Outcomes {
    const rules = this.#rules;
    const entries: Accepted[] = [];
    const marks: Record<Mark, string[]> = { gone: [], returned: [] };
    for (const [id, memory] of this.#inventory.memories.toSorted(byId)) {
      yield yieldPoint;
      const one = rules.accepted(memory);
      if (one !== undefined) entries.push(one);
      const mark = rules.mark(memory);
      if (mark !== undefined) marks[mark].push(id);
      const described = rules.described(memory);
      if (described === undefined) this.#inventory.forget(id);
      else this.#inventory.apply(id, { memory: described, outcomes: [] });
    }
    const summary = `the host has ${entries.length} ${rules.noun}${entries.length === 1 ? "" : "s"}`;
    const parts = describedInParts<Accepted>(
      {
        entries,
        summary,
        bytesOf: ({ bytes }) => bytes.length,
        originalOf: (held) => ({
          type: rules.listType,
          bytes: listOf(held.map(({ bytes }) => bytes)),
          redacted: held.reduce((sum, { redacted }) => sum + redacted, 0),
        }),
        detailOf: (_, part) => (part === 0 ? marks : {}),
      },
      at,
    );
    for (const part of parts) {
      this.#due.count(part);
      yield part;
    }
  }

  #resumeDescription(event: Event, { part, gone: removed, returned }: HostDetail): void {
    const { entries, known, marked } = this.#rules;
    if (part === 0) {
      this.#inventory.reset({ isKnown: true });
      this.#isFirstDescription = event.ordinal === 1n;
      this.#returned = new Set(returned);
      for (const id of removed) this.#inventory.restore(id, marked("gone", undefined));
    }
    // An item of a later description may have been absent by then, or observed otherwise and not believed.
    const asOf = this.#isFirstDescription ? event.observed_at : undefined;
    for (const { id, bytes } of entries(event.original?.bytes ?? Buffer.alloc(0)) ?? []) {
      const listed = known(bytes);
      this.#inventory.restore(id, this.#returned.has(id) ? marked("returned", listed) : listed, asOf);
    }
  }

  #resumeItem(event: Event): void {
    const id = this.#rules.subject(event);
    if (id === undefined) return;
    const memory = this.#rules.resume(this.#inventory.memoryOf(id), event);
    if (memory !== undefined) this.#inventory.restore(id, memory, event.observed_at);
  }
}

function byId([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
