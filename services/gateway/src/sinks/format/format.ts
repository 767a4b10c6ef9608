import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Filter } from "@tapedeck/shared/filter/filter";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import type { ReceivedAnswer } from "../target/http-target.ts";

/** An event that a sink delivers. */
export type SinkEvent = { readonly recorded: RecordedEvent; readonly position: string };

/** What a format needs to know of a sink. */
export type FormattedSink = {
  readonly workspace: string;
  readonly name: string;
  /** One event a request, or as many as there are. */
  readonly mode: "batched" | "structured";
  /** Which events it gets. */
  readonly filter: Filter;
  /** Whether operations are sent at their start, too, where the format does that. */
  readonly live: boolean;
  /** Signs requests, where the format does that. */
  readonly secret: string | undefined;
  /** The epoch of the log. */
  readonly epoch: string;
  /** The address of the page, without a slash at its end, for links. */
  readonly page: string;
  /** The JSON with placeholders that a chat is sent; undefined: the format's own. */
  readonly template?: Readonly<Record<string, unknown>> | undefined;
};

/** A request to a target, before it is signed. */
export type SinkRequest = {
  /** The same for every attempt at the same events. */
  readonly id: string;
  readonly body: string | Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** How many of the batch's events, from its first on, are delivered when this and all earlier requests are accepted. */
  readonly covers: number;
  /** The event that it is about, where that is none of the batch's. */
  readonly of?: SinkEvent;
};

/** A request that belongs to none of the batch's events. */
export type DueRequest = SinkRequest & {
  /** The event that it is about, which is parked if the target refuses the request. */
  readonly of: SinkEvent;
};

/** A request as it is sent. */
export type SentRequest = { readonly id: string; readonly body: Uint8Array };

/** What a format may read of the log beside the events that it is given. Waits while the log is away. */
export type FormatReader = Pick<LogReader, "history" | "historyBatches" | "lastMatch" | "now" | "read">;

/** An operation that ended at a position. */
export type FailedOperation = {
  readonly workspace: string;
  readonly session: string;
  readonly kind: string;
  readonly runner: number;
  readonly loop: number;
  readonly position: string;
  /** When its end was recorded, in ms since 1970. */
  readonly recordedAt: number;
  /** The same of the oldest of those whose causes are waited for together. */
  readonly oldestRecordedAt: number;
};

/** Why an operation failed: the step that failed first, the line that says why, and where; undefined: not known in time. Never rejects. */
export type CauseOf = (
  operation: FailedOperation,
  signal: AbortSignal,
) => Promise<{ readonly what: string; readonly text: string; readonly place: string } | undefined>;

export type FormatOpening = {
  /** What the last pass remembered at the position from which this one goes on; undefined: nothing, or it was set by hand. */
  readonly memory: string | undefined;
  readonly causeOf: CauseOf;
  /** Between two messages about a source, in a chat. */
  readonly intervalMs: number;
  /** How long after the end of a run it is waited for what is recorded of it later. */
  readonly lateMs: number;
};

/** A format during one pass over the log. What it remembers is lost with the pass: at the next one it reads it again. */
export type FormatPass = {
  /**
   * Events of one workspace, in order. Events after the last request's `covers` are of no interest to the receiver. It is called again
   * with the same events, or with some of them, until they are delivered. What it throws parks its events, except for errors of the
   * reader, which end the pass. With the signal it may end with any result.
   */
  requests(events: readonly SinkEvent[], signal: AbortSignal): readonly SinkRequest[] | Promise<readonly SinkRequest[]>;
  /** What the next pass needs to know when everything up to the offset is delivered. It is stored with the cursor. */
  memory?(offset: Offset): string;
  /** When requests are due that belong to no event, in ms since 1970, if no event comes before; undefined: none are. */
  dueAt?(): number | undefined;
  /** Those that are due. */
  dueRequests?(now: number, signal: AbortSignal): Promise<readonly DueRequest[]>;
  /** All of them are accepted or parked. */
  dueDelivered?(now: number): void;
  /** The request with this id is accepted, or its event is parked: it need not be made again with others that are not. */
  settled?(id: string): void;
};

/** How events become requests of a kind of receiver. */
export type Format = {
  /** Patterns of the kinds that it makes requests of; absent: all. Other events are not read. */
  kinds?(sink: FormattedSink): readonly string[];
  /** Which of these it needs; absent: all. */
  needs?(event: Event): boolean;
  open(sink: FormattedSink, reader: FormatReader, opening: FormatOpening): FormatPass;
  /** A request that says nothing happened, by which `tapedeck sink test` and a suspicion learn whether a target is well. */
  test(at: Date, sink: FormattedSink): SinkRequest;
  /** People see the request of a test: only a person sends it. What a target refuses is judged by its answer. */
  readonly isTestSeen?: boolean;
  /** What an attempt adds, such as a signature of this moment. */
  headersOf?(sent: SentRequest, at: Date, sink: FormattedSink): Readonly<Record<string, string>>;
  /** What targets do with events that are more than a day old, for a warning. */
  readonly ofOldEvents?: string;
  /** The error in an answer's body, for receivers that write it in a form of their own. With it even a 2xx is a refusal. */
  errorIn?(answer: ReceivedAnswer): string | undefined;
};
