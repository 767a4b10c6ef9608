import type { RecordedEvent } from "@tapedeck/shared/log/log";

/** An event that a sink delivers. */
export type SinkEvent = { readonly recorded: RecordedEvent; readonly position: string };

/** What a format needs to know of a sink. */
export type FormattedSink = {
  readonly workspace: string;
  readonly name: string;
  /** One event a request, or as many as there are. */
  readonly mode: "batched" | "structured";
  /** Signs requests, where the format does that. */
  readonly secret: string | undefined;
  /** The epoch of the log. */
  readonly epoch: string;
};

/** A request to a target, before it is signed. */
export type SinkRequest = {
  /** The same for every attempt at the same events. */
  readonly id: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** How many of the batch's events, from its first on, are delivered when this and all earlier requests are accepted. */
  readonly covers: number;
};

/** A request as it is sent. */
export type SentRequest = { readonly id: string; readonly body: Uint8Array };

/** How events become requests of a kind of receiver. */
export type Format = {
  /** Events of one workspace, in order. Events after the last request's `covers` are of no interest to the receiver. */
  requests(events: readonly SinkEvent[], sink: FormattedSink): readonly SinkRequest[];
  /** A request that says nothing happened, by which `tapedeck sink test` and a suspicion learn whether a target is well. */
  test(at: Date, sink: FormattedSink): SinkRequest;
  /** What an attempt adds, such as a signature of this moment. */
  headersOf?(sent: SentRequest, at: Date, sink: FormattedSink): Readonly<Record<string, string>>;
  /** Whether an answer is a success, for a receiver that says so in another way than by 2xx. */
  accepts?(status: number, body: string): boolean;
};
