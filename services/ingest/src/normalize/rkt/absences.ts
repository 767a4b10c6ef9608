import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import type { Inventory } from "../inventory/inventory.ts";
import type { FrameOutcome } from "../inventory/inventory-rules.ts";
import type { ObservationOutcome, YieldPoint } from "../inventory/observing.ts";
import { yieldPoint } from "../inventory/observing.ts";
import type { Extinction } from "./extinction.ts";
import type { HostRules } from "./host-rules.ts";

/** The first list that lacked an item, the one before that, and how many lacked it in a row, without a failure between. */
type Absence = { readonly at: Timestamp; readonly after: Timestamp | undefined; readonly inARow: number };

/** One list of rkt's may lack what the host has; this many in a row may not. */
const listsToBelieve = 2;

/** Which items of a host the lists lack, and when that is believed. */
export class Absences<Memory> {
  readonly #rules: HostRules<Memory>;
  readonly #inventory: Inventory<Memory>;
  readonly #extinction: Extinction;
  readonly #byId = new Map<string, Absence>();

  constructor(rules: HostRules<Memory>, inventory: Inventory<Memory>, extinction: Extinction) {
    this.#rules = rules;
    this.#inventory = inventory;
    this.#extinction = extinction;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** The item was answered after all. */
  ended(id: string): void {
    this.#byId.delete(id);
  }

  /** Lists before and after an outage are not in a row. */
  outage(): void {
    for (const [id, absence] of this.#byId) this.#byId.set(id, { ...absence, inARow: 0 });
  }

  /** Takes in a list, after its entries are compared. */
  *listed(ids: ReadonlySet<string>, at: Timestamp): Generator<ObservationOutcome | YieldPoint, void> {
    for (const id of this.#byId.keys()) if (ids.has(id)) this.#byId.delete(id);
    const absent = this.#inventory.absentFrom(ids).toSorted();
    for (const id of absent) {
      if (this.#inventory.isPresent(id)) yield* this.#missed(id, at);
      else if (this.#inventory.memoryOf(id) === undefined) this.#forget(id);
      yield yieldPoint;
    }
    const verdict = this.#extinction.verdict(this.#rules.channel);
    if (verdict === "held") return;
    const isLost = (id: string) => (this.#byId.get(id)?.inARow ?? 0) >= listsToBelieve;
    const lost = absent.filter((id) => this.#inventory.isPresent(id) && isLost(id));
    if (verdict === "certain" && lost.length > 0) {
      this.#extinction.reported(this.#rules.channel);
      yield this.#allRemoved(lost, at);
    }
    for (const id of lost) yield* this.believe(id, verdict === "certain");
  }

  /** The item is gone. `inferred`: concluded from long silence. */
  believe(id: string, inferred: boolean): readonly FrameOutcome[] {
    const memory = this.#inventory.memoryOf(id);
    const absence = this.#byId.get(id);
    if (memory === undefined || absence === undefined) return [];
    this.#byId.delete(id);
    return this.#inventory.apply(id, this.#rules.lost(memory, absence, inferred));
  }

  #missed(id: string, at: Timestamp): readonly FrameOutcome[] {
    const before = this.#byId.get(id);
    const memory = this.#inventory.memoryOf(id);
    const first = before ?? { at, after: this.#inventory.observedBefore(id, at), inARow: 0 };
    this.#byId.set(id, { ...first, inARow: first.inARow + 1 });
    // The held facts may be dropped now, and then the same bytes are news.
    this.#inventory.judgeAgain(id);
    return before !== undefined || memory === undefined ? [] : this.#inventory.apply(id, this.#rules.missed(memory));
  }

  #allRemoved(lost: readonly string[], at: Timestamp): ObservationOutcome {
    const after = lost.flatMap((id) => this.#byId.get(id)?.after ?? []).sort(compareTimestamps)[0];
    return { what: "gap", reason: `all ${this.#rules.noun}s were gone at once`, after, until: at };
  }

  #forget(id: string): void {
    this.#inventory.forget(id);
    this.#byId.delete(id);
  }
}
