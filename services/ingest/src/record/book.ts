import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { LogWriter, Published } from "@tapedeck/shared/log/log";
import type { SourceName } from "@tapedeck/shared/source";
import { ulid } from "ulid";
import type { Fact, Moment } from "../upstreams/upstream.ts";
import { type Numbered, type Numbering, numbering } from "./numbering.ts";
import { sourceAdded } from "./own-facts.ts";
import { type LogPast, loadHistory, type SourceHistory } from "./source-history.ts";
import { openWriter, type SourceWriter } from "./writer.ts";

export type BookOptions = {
  readonly log: { readonly writer: LogWriter; readonly reader: LogPast };
  readonly source: SourceName;
  readonly hello: Hello;
  readonly signal: AbortSignal;
  readonly onAcknowledged: (messages: number) => void;
  readonly onTrouble: (published: Exclude<Published, { outcome: "acknowledged" }>) => void;
};

/** One source's place in the log: what it says already, and what is added to it, in order. */
export type Book = AsyncDisposable & {
  readonly history: SourceHistory;
  readonly numbers: Numbering;
  readonly writer: SourceWriter;
  /** Something that Tapedeck says at this moment; the session is empty for facts about the source. */
  own(session: string, fact: Fact, at: Moment, notBefore?: Moment): Numbered;
  /**
   * Adds events that get into the log together. In the very order in which they were numbered, and before anything else
   * is numbered. Gives how many messages have been added when they are.
   */
  publish(numbered: readonly Numbered[]): number;
  /** What the first event of a source comes after. */
  introduction(at: Moment): readonly Numbered[];
  /** Told of each event when it is on its way to the log. */
  readonly listeners: Set<(event: Event) => void>;
};

/** Rejects only when the signal aborts; waits while the log is away. */
export async function openBook({ log, source, hello, signal, ...told }: BookOptions): Promise<Book> {
  const { history, last } = await loadHistory({ log, source, signal });
  const numbers = numbering(source, last?.mark.cursor);
  const listeners = new Set<(event: Event) => void>();
  const writer = openWriter({
    log: log.writer,
    source,
    writer: ulid(),
    afterSeq: last?.seq ?? 0,
    onAcknowledged: (_, messages) => told.onAcknowledged(messages),
    onTrouble: told.onTrouble,
  });
  const own: Book["own"] = (session, fact, observedAt, notBefore) =>
    numbers.own(session, fact, { observedAt, ...(notBefore && { notBefore }) });
  return {
    history,
    numbers,
    writer,
    own,
    publish(numbered) {
      for (const { event } of numbered) {
        history.observe(event, writer.lastSeq + 1);
        for (const listener of listeners) listener(event);
      }
      return writer.append(numbered.map(({ message }) => message));
    },
    introduction: (at) => (history.known ? [] : [own("", sourceAdded(hello.developer, hello.project), at)]),
    listeners,
    [Symbol.asyncDispose]: () => writer[Symbol.asyncDispose](),
  };
}
