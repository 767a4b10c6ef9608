import { isTextKind, textKinds } from "@tapedeck/shared/events/kinds";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { earlierOf, justBefore, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { sql } from "kysely";
import { searchBranches } from "../../api/event-search.ts";
import type { Tx } from "../../db/database.ts";
import { blockOf } from "../events/blocks.ts";
import type { EarlierEvents } from "../view.ts";
import { isPrintedBy, type Printer } from "./output.ts";

/**
 * How many events of text are read for each failure: the first ones, those before its end, and those after it.
 * Skaffold reports output on another channel than the steps, so some of a step's comes when that is over.
 */
export const maxText = { first: 200, last: 1_000, late: 300 } as const;

export type OutputRange = {
  readonly session: string;
  readonly source: string;
  /** Text up to here belongs to something else. */
  readonly after: Offset;
  readonly start: Offset;
  readonly end: Offset;
  /** Text from here on belongs to something else. */
  readonly until: Offset;
};

/**
 * Text around an operation, from the log: what is looked at depends on positions alone, never on how events were cut into
 * batches. The batch's own events are at hand and need not be read.
 */
export class OutputReader {
  readonly #tx: Tx;
  readonly #log: EarlierEvents;
  readonly #first: Offset;
  readonly #bySession: ReadonlyMap<string, readonly RecordedEvent[]>;
  readonly #byOffset: ReadonlyMap<Offset, RecordedEvent>;

  constructor(tx: Tx, log: EarlierEvents, batch: readonly RecordedEvent[]) {
    this.#tx = tx;
    this.#log = log;
    this.#first = batch[0]?.offset ?? logStart;
    this.#byOffset = new Map(batch.map((recorded) => [recorded.offset, recorded]));
    this.#bySession = Map.groupBy(
      batch.filter(({ event }) => isTextKind(event.kind)),
      ({ event }) => event.session,
    );
  }

  /** Where the batch begins. */
  get first(): Offset {
    return this.#first;
  }

  /** The text of the batch by session. */
  get bySession(): ReadonlyMap<string, readonly RecordedEvent[]> {
    return this.#bySession;
  }

  /**
   * What `printer` printed, in the order of the log, and the event of the end. Text before the end is read from its end
   * on, up to where an earlier loop printed it and nothing else did: a failure costs its own output.
   */
  async read({ session, source, after, start, end, until }: OutputRange, printer: Printer): Promise<ReadText> {
    const find = (range: Range) => this.#find({ session, source }, range);
    const last = justBefore(until);
    const [first, before, late] = await Promise.all([
      find({ after: start, until: end, limit: maxText.first, newest: false }),
      find({ after, until: end, limit: maxText.last, newest: true }),
      find({ after: end, until: last, limit: maxText.late, newest: false }),
    ]);
    const read = new Map<Offset, RecordedEvent>();
    const left = [...before];
    const next = left.splice(-firstPart);
    await this.#readInto(read, [...first, ...next, end, ...late]);
    for (let part = next; left.length > 0 && !isEarlier(eventsAt(read, part), printer); ) {
      part = left.splice(-2 * part.length);
      await this.#readInto(read, part);
    }
    const events = [...read.values()].toSorted((a, b) => a.offset - b.offset);
    return { printed: events.filter((one) => isPrintedBy(one, printer)), end: read.get(end) };
  }

  async #readInto(read: Map<Offset, RecordedEvent>, offsets: readonly Offset[]): Promise<void> {
    const unread = [...new Set(offsets)].filter((offset) => !read.has(offset)).toSorted((a, b) => a - b);
    const missing: Offset[] = [];
    for (const offset of unread) {
      const known = this.#byOffset.get(offset);
      if (known === undefined) missing.push(offset);
      else read.set(offset, known);
    }
    if (missing.length === 0) return;
    const events = this.#log.read(missing, new AbortController().signal);
    for await (const recorded of events) read.set(recorded.offset, recorded);
  }

  /** Where failures must end at least so that text of this batch may belong to them. */
  async horizon(source: string, session: string): Promise<Offset> {
    const range = { after: logStart, until: this.#first, limit: maxText.late, newest: true };
    const before = await this.#before({ session, source }, { ...range, until: justBefore(this.#first) });
    return before.length < maxText.late ? logStart : (before[0] ?? logStart);
  }

  /** Positions before the batch are in the tables. Those of the batch may be written meanwhile. */
  async #find(of: Of, range: Range): Promise<readonly Offset[]> {
    const { after, until, limit, newest } = range;
    const own = (this.#bySession.get(of.session) ?? []).map(({ offset }) => offset);
    const inRange = own.filter((offset) => offset > after && offset <= until);
    const before = await this.#before(of, { ...range, until: earlierOf(until, justBefore(this.#first)) });
    const all = [...before, ...inRange];
    return newest ? all.slice(-limit) : all.slice(0, limit);
  }

  async #before({ session, source }: Of, range: Range): Promise<readonly Offset[]> {
    if (range.after >= range.until) return [];
    const groups = sql`
      select t.id, ${session}::text from event_groups t where t.source = ${source} and t.kind = any(${[...textKinds]}::text[])`;
    const { workspace } = sourceParts(source as SourceName);
    const firstBlock = await blockOf(this.#tx, workspace, range.after);
    return searchBranches(this.#tx, groups, { ...range, workspace, subjects: [], firstBlock, by: "session" });
  }
}

/** How many events of text before the end are read at first. */
const firstPart = 50;

function eventsAt(read: ReadonlyMap<Offset, RecordedEvent>, offsets: readonly Offset[]): readonly RecordedEvent[] {
  return offsets.flatMap((offset) => read.get(offset) ?? []);
}

/** Whether a loop before that of the printer printed some of this text, and the printer none. */
function isEarlier(texts: readonly RecordedEvent[], printer: Printer): boolean {
  if (printer.loop === 0 || texts.some((text) => isPrintedBy(text, printer))) return false;
  return texts.some(({ event: { operation } }) => {
    if (operation === undefined || operation.loop === 0) return false;
    return operation.runner < printer.runner || (operation.runner === printer.runner && operation.loop < printer.loop);
  });
}

export type ReadText = {
  readonly printed: readonly RecordedEvent[];
  /** The event of the end; undefined: it can't be read. */
  readonly end: RecordedEvent | undefined;
};

type Of = Pick<OutputRange, "session" | "source">;
type Range = {
  readonly after: Offset;
  readonly until: Offset;
  readonly limit: number;
  readonly newest: boolean;
};
