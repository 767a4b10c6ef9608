import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, type Offset } from "@tapedeck/shared/log/offset";
import type { FoldStateRow, SnapshotRow } from "../../db/schema.ts";
import type { Fold } from "./fold.ts";
import type { OfSession, StateChange, StateStep } from "./state-table.ts";

/** The least distance of two snapshots: so many events, or so many bytes. */
const snapshotAfter = { events: 100, bytes: 256 * 1024 };

/** One session's state while a batch is folded. */
export class FoldedSession {
  readonly fold: Fold;
  readonly #of: OfSession;
  readonly #before: unknown;
  readonly #steps: StateStep<unknown>[] = [];
  readonly #snapshots: SnapshotRow[] = [];
  #state: unknown;
  #json: { readonly state: unknown; readonly text: string } | undefined;
  #position: Offset;
  #events: number;
  #bytes: number;

  constructor(fold: Fold, of: OfSession, row: FoldStateRow | undefined) {
    this.fold = fold;
    this.#of = of;
    this.#before = row === undefined ? undefined : JSON.parse(row.state);
    this.#state = this.#before ?? fold.initial;
    this.#json = row && { state: this.#state, text: row.state };
    this.#position = row?.position ?? logStart;
    this.#events = row?.events_since_snapshot ?? 0;
    this.#bytes = row?.bytes_since_snapshot ?? 0;
  }

  apply(recorded: RecordedEvent): void {
    const { event, offset } = recorded;
    const after = this.fold.evolve(this.#state, event);
    if (after !== this.#state) this.#steps.push({ before: this.#state, after, recorded });
    this.#state = after;
    this.#position = offset;
    if (this.#isSnapshotDue(sizeOf(event)) && this.#bytes > this.#stateJson().length) this.#takeSnapshot();
  }

  get snapshots(): readonly SnapshotRow[] {
    return this.#snapshots;
  }

  row(): FoldStateRow {
    return {
      ...this.#of,
      fold_version: this.fold.version,
      position: this.#position,
      state: this.#stateJson(),
      events_since_snapshot: this.#events,
      bytes_since_snapshot: this.#bytes,
    };
  }

  change(): StateChange<unknown> {
    return { of: this.#of, before: this.#before, after: this.#state, steps: this.#steps };
  }

  /**
   * Counts the event. The positions of snapshots must not depend on batches, so they are decided by these counts alone, and
   * only where one has doubled: comparing the state's size means to write all of it.
   */
  #isSnapshotDue(size: number): boolean {
    const before = doublings(this.#events, snapshotAfter.events) + doublings(this.#bytes, snapshotAfter.bytes);
    this.#events += 1;
    this.#bytes += size;
    return doublings(this.#events, snapshotAfter.events) + doublings(this.#bytes, snapshotAfter.bytes) > before;
  }

  #takeSnapshot(): void {
    const { session } = this.#of;
    const state = this.#stateJson();
    this.#snapshots.push({ session, fold_version: this.fold.version, position: this.#position, state });
    this.#events = 0;
    this.#bytes = 0;
  }

  #stateJson(): string {
    if (this.#json === undefined || this.#json.state !== this.#state) {
      this.#json = { state: this.#state, text: JSON.stringify(this.#state) };
    }
    return this.#json.text;
  }
}

/** How often the count has doubled since it reached the first one; 0 before that. */
function doublings(count: number, first: number): number {
  return count < first ? 0 : 1 + Math.floor(Math.log2(count / first));
}

/** About what the event takes in the log: the frame and a normalized part. */
function sizeOf({ original, summary }: Event): number {
  return 200 + summary.length + (original?.bytes.length ?? 0);
}
