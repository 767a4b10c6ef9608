import type { Recorded } from "@tapedeck/proto/tapedeck/v1/recorder";
import { refusedImport } from "./refused-import.ts";

const maxEventBytes = 8 * 1024 * 1024;

/** Joins the pieces of an event that is too large for one item. */
export class EventPieces {
  #pieces: readonly Buffer[] = [];

  get isIncomplete(): boolean {
    return this.#pieces.length > 0;
  }

  /** Returns the events that are whole; undefined while more pieces are to come. `count`: the number of the first event. */
  join({ events, more }: Recorded, count: number): readonly Buffer[] | undefined {
    if (!more && this.#pieces.length === 0) return events;
    this.#pieces = [...this.#pieces, ...events];
    const bytes = this.#pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
    if (bytes > maxEventBytes) throw refusedImport(`event ${count} has more than ${maxEventBytes} bytes`);
    if (more) return undefined;
    const whole = Buffer.concat(this.#pieces);
    this.#pieces = [];
    return [whole];
  }
}
