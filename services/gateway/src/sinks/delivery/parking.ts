import type { LogReader } from "@tapedeck/shared/log/log";
import { belongsToLog, parsePosition } from "@tapedeck/shared/log/position";
import type { SinkName, SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { abortable } from "@tapedeck/shared/sync/abortable";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { retried } from "@tapedeck/shared/sync/retried";
import { maxParked, type ParkedEvent, parkedIn } from "../definition.ts";
import type { SinkEvent } from "../format/format.ts";
import type { Refused } from "./answers.ts";

/** A parked event with its position. */
export type Parked = ParkedEvent & { readonly position: string };

/** A parked event with what the log says of it. */
export type ListedParked = Parked & { readonly source: string };

/** The parked events of a sink, in their order. Rejects while NATS is away. */
export async function parkedOf(store: Pick<SinkStore, "all">, sink: SinkName): Promise<readonly Parked[]> {
  const entries = await store.all(["parked"], sink);
  const parked = entries.flatMap(({ place, value }) => {
    const event = parkedIn(value);
    return place === undefined || event === undefined ? [] : [{ ...event, position: place }];
  });
  return parked.toSorted((a, b) => (a.position < b.position ? -1 : 1));
}

/** Those that the log still has. What was erased or has expired is parked no longer. Rejects when the log or NATS is away, or the log is another one. */
export async function stillParked(
  store: Pick<SinkStore, "all" | "remove">,
  log: Pick<LogReader, "bounds" | "epoch" | "formerEpochs" | "read">,
  sink: SinkName,
  signal: AbortSignal,
): Promise<readonly ListedParked[]> {
  const left: ListedParked[] = [];
  const all = await parkedOf(store, sink);
  // The reader of a log that was replaced doesn't know what the new one has.
  if (all.length > 0) await log.bounds();
  for (const parked of all) {
    const position = parsePosition(parked.position);
    const offsets = position !== undefined && belongsToLog(log, position) ? [position.offset] : [];
    const [found] = await Array.fromAsync(log.read(offsets, signal));
    if (signal.aborted) return left;
    if (found !== undefined) left.push({ ...parked, source: found.event.source });
    else await store.remove({ ...sink, type: "parked", place: parked.position });
  }
  return left;
}

/** Parks events of one sink. */
export class Parking {
  readonly #store: SinkStore;
  readonly #sink: SinkName;
  readonly #changed = new Notifier();
  readonly #positions = new Set<string>();

  private constructor(store: SinkStore, sink: SinkName) {
    this.#store = store;
    this.#sink = sink;
  }

  static async open(store: SinkStore, sink: SinkName): Promise<Parking> {
    const parking = new Parking(store, sink);
    await parking.recount();
    return parking;
  }

  get count(): number {
    return this.#positions.size;
  }

  get isFull(): boolean {
    return this.count >= maxParked;
  }

  /** Counts again: somebody may have retried or dropped some. */
  async recount(): Promise<void> {
    // What is parked while it reads may not be among what it finds.
    const before = [...this.#positions];
    const found = new Set((await parkedOf(this.#store, this.#sink)).map(({ position }) => position));
    for (const position of before) if (!found.has(position)) this.#positions.delete(position);
    for (const position of found) this.#positions.add(position);
    this.#changed.ring();
  }

  /**
   * Resolves when the event is stored as parked, for which it may wait; with the signal otherwise. One that is parked already, as
   * after a rewind, takes no more room.
   */
  async park({ recorded, position }: SinkEvent, refused: Refused, tries: number, signal: AbortSignal): Promise<void> {
    const needsRoom = () => this.isFull && !this.#positions.has(position);
    for (let changed = this.#changed.next(); needsRoom() && !signal.aborted; changed = this.#changed.next()) {
      await abortable(changed, signal).catch(() => {});
    }
    const { status, error } = refused;
    const parked: ParkedEvent = {
      event: recorded.event.id,
      kind: recorded.event.kind,
      tries,
      ...(status !== undefined && { status }),
      error,
      at: new Date().toISOString(),
    };
    await retried(async () => {
      await this.#store.put({ ...this.#sink, type: "parked", place: position }, parked);
    }, signal);
    if (!signal.aborted) this.#positions.add(position);
  }

  /** What was parked before a rewind, and is accepted now, is parked no longer. Never rejects: what stays can be dropped by hand. */
  async accepted(events: readonly SinkEvent[]): Promise<void> {
    if (this.count === 0) return;
    for (const { position } of events) {
      if (!this.#positions.has(position)) continue;
      const removed = this.#store.remove({ ...this.#sink, type: "parked", place: position });
      if (await removed.catch(() => undefined)) this.#positions.delete(position);
      this.#changed.ring();
    }
  }
}
