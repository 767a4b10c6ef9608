import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { SourceName } from "@tapedeck/shared/source";
import { isTextFrame, type LastNumbers } from "../frames/numbering.ts";
import type { SourceJournal } from "../journal/source-journal.ts";
import { isOfImport } from "./imported-events.ts";
import { isSameEvent, type KnownEvents } from "./known-events.ts";
import { refusedImport } from "./refused-import.ts";

export type LogComparisonOptions = {
  readonly source: SourceName;
  /** The id that the session has in this log. */
  readonly session: string;
  readonly journal: SourceJournal;
  /** The events that the log has of the session. */
  readonly known: KnownEvents;
};

/** Compares the events of an import, in their order, with those that the log has of the session. */
export class LogComparison {
  readonly #options: LogComparisonOptions;
  #wasEndedByImport = false;

  constructor(options: LogComparisonOptions) {
    this.#options = options;
  }

  /** An earlier import has ended the session, because it was still running when it was exported. */
  get wasEndedByImport(): boolean {
    return this.#wasEndedByImport;
  }

  /** The last numbers of the events that were compared. */
  get last(): LastNumbers {
    return this.#options.known.last;
  }

  /**
   * True if the log has the event, or had it until its text expired. Events that imports themselves have added are not
   * compared. `count` is the number of the event in the import.
   * @throws TapedeckError if the log has another event in its place
   */
  async has(event: Event, count: number): Promise<boolean> {
    const { known, session, source } = this.#options;
    for (let next = await known.peek(); next !== undefined; next = await known.peek()) {
      const isSame = isSameEvent(next, event);
      if (isSame || isOfImport(next)) {
        if (!isSame && this.#hasExpired(event)) return true;
        known.skip();
        if (isOfImport(next)) this.#wasEndedByImport = next.kind === "session.ended";
        if (isSame) return true;
      } else if (isOfImport(event) || this.#hasExpired(event)) return true;
      else {
        throw refusedImport(
          `session ${session} is in ${source} already, but its event ${count} is a different one there, ${next.kind}: \`tapedeck erase --session ${session}\` removes it`,
        );
      }
    }
    return false;
  }

  /** What the log has after the events of the import: the end that an earlier import added, or what a later export had. */
  async further(): Promise<"imported" | "recorded" | undefined> {
    const event = await this.#options.known.peek();
    return event && (isOfImport(event) ? "imported" : "recorded");
  }

  #hasExpired(event: Event): boolean {
    const { session, journal } = this.#options;
    if (!journal.expires || !isTextFrame([event])) return false;
    return journal.numbers.session !== session || event.ordinal <= BigInt(journal.numbers.ordinal(event.channel));
  }
}
