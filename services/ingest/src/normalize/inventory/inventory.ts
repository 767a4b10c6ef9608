import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import { unreadable } from "../facts.ts";
import { largestFrameBytes, shaOf } from "../original.ts";
import type { FrameOutcome, InventoryEntry, InventoryRules, Judgement, Sighting } from "./inventory-rules.ts";
import { ObservationTimes } from "./observation-times.ts";
import { type WatcherOptions, type YieldPoint, yieldPoint } from "./observing.ts";

/** Ids in events have at most 1,000 characters, and a resumed recorder knows items by these. */
const longestId = 200;
/** How much larger an item may be in a description than it was in the list. */
const describedBytes = 16 * 1024;

export type InventoryOptions = Pick<WatcherOptions, "mask" | "frameBytes">;

type Item<Memory> = {
  /** Undefined: the item can't be decoded, or none of its content is believed. */
  memory: Memory | undefined;
  /**
   * The entry as answered last, before masking: equal bytes report nothing. A copy, which does not keep the whole
   * answer alive.
   */
  raw?: Uint8Array | undefined;
  /** SHA-256 of the masked bytes that could not be decoded. */
  unreadable?: string | undefined;
  /** The connection in which it was first observed. */
  readonly connection: number;
  /** When an event reported the memory. Later observations may have seen otherwise without an event. */
  asOf?: Timestamp | undefined;
  /** The last answer about the item alone, where that showed it as it is remembered. */
  observedAloneAt?: Timestamp | undefined;
};

/**
 * The known items of one list, and the changes that the next list makes: new and changed items are judged by their
 * bytes, absent ones are named. The caller decides when an absence is believed. The work is linear in the items, and an
 * item is masked and decoded only if its bytes changed.
 */
export class Inventory<Memory> {
  readonly times = new ObservationTimes();
  readonly #rules: InventoryRules<Memory>;
  readonly #mask: InventoryOptions["mask"];
  readonly #largestBytes: number;
  readonly #items = new Map<string, Item<Memory>>();
  /** SHA-256 of items that are recorded as unreadable, and were so in the last list. */
  #unreadable = new Set<string>();
  #isKnown = false;
  #isRecognized = false;
  #connection = 0;
  #gap: string | undefined;

  constructor(rules: InventoryRules<Memory>, { mask, frameBytes = largestFrameBytes }: InventoryOptions) {
    this.#rules = rules;
    this.#mask = mask;
    this.#largestBytes = frameBytes - describedBytes;
  }

  /** False before the first list of all, whose items are adopted without events. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** The last list has an item that was present before the connection began. */
  get isRecognized(): boolean {
    return this.#isRecognized;
  }

  get hasPresentItems(): boolean {
    return [...this.#items.values()].some((item) => this.#isPresent(item));
  }

  connected(): void {
    this.#connection += 1;
  }

  /** Notes why nothing could be observed. The first reason since the last list counts. */
  outage(reason: string): void {
    if (this.#isKnown) this.#gap ??= reason;
  }

  /** Ends the outage, if there was one. */
  closeGap(at: Timestamp): { readonly reason: string; readonly after: Timestamp | undefined } | undefined {
    const reason = this.#gap;
    this.#gap = undefined;
    return reason === undefined ? undefined : { reason, after: this.times.before(at) };
  }

  /** Judges the items of a whole list, in its order. Absent items stay as they are. */
  *compare(entries: readonly InventoryEntry[], at: Timestamp): Generator<FrameOutcome | YieldPoint, void> {
    const isFirst = !this.#isKnown;
    this.#isKnown = true;
    this.#isRecognized = false;
    const compared = new Set<string>();
    const unreadables = new Set<string>();
    for (const entry of entries) {
      yield yieldPoint;
      if (compared.has(entry.id)) continue;
      compared.add(entry.id);
      const item = this.#items.get(entry.id);
      if (item !== undefined) this.#isRecognized ||= this.isFromBefore(entry.id) && this.#isPresent(item);
      if (item === undefined || this.#isNews(item, entry.bytes)) yield* this.judge(entry, at, isFirst);
      this.#toEnd(entry.id);
      const sha = this.#items.get(entry.id)?.unreadable;
      if (sha !== undefined) unreadables.add(sha);
    }
    this.#unreadable = unreadables;
  }

  /** Judges one item, whether or not its bytes changed. */
  judge({ id, bytes }: InventoryEntry, at: Timestamp, isFirst = false): readonly FrameOutcome[] {
    const item = this.#items.get(id) ?? { memory: undefined, connection: this.#connection };
    item.raw = Uint8Array.from(bytes);
    this.#items.set(id, item);
    const sighting = { id, ...this.#mask(this.#rules.entryType, bytes), at, after: this.observedBefore(id, at) };
    item.asOf = undefined;
    try {
      if (id === "" || id.length > longestId) throw new Error(`its id has ${id.length} characters`);
      if (bytes.byteLength > this.#largestBytes) throw new Error("the log takes no such large one");
      const judgement = isFirst
        ? { memory: this.#rules.adopt(sighting), outcomes: [] }
        : this.#rules.judge(item.memory, sighting);
      item.unreadable = undefined;
      return this.apply(id, judgement);
    } catch (cause) {
      // The item is present, and what was known of it stays.
      return this.#notReadable(item, sighting, unreadable(bytes, cause));
    }
  }

  /** Applies a judgement to the memory, and returns what it records. */
  apply(id: string, { memory, outcomes }: Judgement<Memory>): readonly FrameOutcome[] {
    const item = this.#items.get(id);
    if (item !== undefined) item.memory = memory;
    return outcomes;
  }

  /** Known items that the list lacks. */
  absentFrom(listed: ReadonlySet<string>): readonly string[] {
    return [...this.#items.keys()].filter((id) => !listed.has(id));
  }

  /** The last observation before this moment that is known to have shown the item as it is remembered. */
  observedBefore(id: string, at: Timestamp): Timestamp | undefined {
    if (this.#rules.isConclusive) return this.times.before(at);
    const { asOf, observedAloneAt } = this.#items.get(id) ?? {};
    const listedAt = asOf === undefined ? this.times.sureBefore(at) : earlier(asOf, at);
    return latest(listedAt, observedAloneAt && earlier(observedAloneAt, at));
  }

  /** An answer about the item alone was judged. */
  observedAlone(id: string, at: Timestamp): void {
    const item = this.#items.get(id);
    if (item?.memory === undefined || item.unreadable !== undefined || this.#rules.isHeld(item.memory)) return;
    item.observedAloneAt = at;
  }

  isPresent(id: string): boolean {
    const item = this.#items.get(id);
    return item !== undefined && this.#isPresent(item);
  }

  /** The item was known before the connection began. */
  isFromBefore(id: string): boolean {
    const item = this.#items.get(id);
    return item !== undefined && item.connection < this.#connection;
  }

  memoryOf(id: string): Memory | undefined {
    return this.#items.get(id)?.memory;
  }

  /** The memory of each item, in the order of the last list. */
  get memories(): readonly (readonly [id: string, memory: Memory])[] {
    return [...this.#items].flatMap(([id, { memory }]) => (memory === undefined ? [] : [[id, memory] as const]));
  }

  /** The same bytes will be judged again. */
  judgeAgain(id: string): void {
    const item = this.#items.get(id);
    if (item !== undefined) item.raw = undefined;
  }

  forget(id: string): void {
    this.#items.delete(id);
  }

  /** Starts from a description of the log, which `restore` then fills; or from none, where not `isKnown`. */
  reset({ isKnown }: { readonly isKnown: boolean }): void {
    this.#items.clear();
    this.#isKnown = isKnown;
  }

  /** Takes in the log's record of an item. */
  restore(id: string, memory: Memory | undefined, asOf?: Timestamp): void {
    this.#isKnown = true;
    const connection = this.#items.get(id)?.connection ?? this.#connection;
    this.#items.set(id, { memory, connection, asOf });
  }

  /** Takes in that the log has an item as unreadable. */
  restoreUnreadable(sha: string): void {
    this.#unreadable.add(sha);
  }

  #isPresent({ memory }: Item<Memory>): boolean {
    return memory !== undefined && this.#rules.isPresent(memory);
  }

  #isNews({ memory, raw }: Item<Memory>, bytes: Uint8Array): boolean {
    const isHeld = memory !== undefined && this.#rules.isHeld(memory);
    return isHeld || raw === undefined || Buffer.compare(raw, bytes) !== 0;
  }

  #notReadable(
    item: Item<Memory>,
    { bytes, redacted, at }: Sighting,
    fact: FrameOutcome["facts"][0],
  ): readonly FrameOutcome[] {
    const sha = shaOf(bytes);
    item.unreadable = sha;
    if (this.#unreadable.has(sha)) return [];
    return [
      { what: "frame", original: { type: this.#rules.entryType, bytes, redacted }, facts: [fact], observedAt: at },
    ];
  }

  #toEnd(id: string): void {
    const item = this.#items.get(id);
    if (item === undefined) return;
    this.#items.delete(id);
    this.#items.set(id, item);
  }
}

function earlier(one: Timestamp, at: Timestamp): Timestamp | undefined {
  return compareTimestamps(one, at) < 0 ? one : undefined;
}

function latest(one: Timestamp | undefined, other: Timestamp | undefined): Timestamp | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return compareTimestamps(one, other) < 0 ? other : one;
}
