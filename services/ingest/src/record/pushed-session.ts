import type { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import type { Hello, Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { PublishOutcome } from "@tapedeck/shared/log/log";
import type { SourceName } from "@tapedeck/shared/source";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import type { Normalizer } from "../normalize/normalizer.ts";
import type { ReplayTimes } from "./frames/replay-sorter.ts";
import type { SourceJournalOptions } from "./journal/source-journal.ts";

export type SessionRecorderOptions = {
  readonly log: SourceJournalOptions["log"];
  readonly source: SourceName;
  readonly normalizer: Normalizer;
  readonly hello: Hello;
  readonly signal: AbortSignal;
  readonly listener?: SessionRecorderListener;
  /** Seconds that text lives in the log; absent: forever. */
  readonly textTtl?: number | undefined;
  /** Masks secrets also in a session that began with `redact: off`. */
  readonly requireRedact?: boolean | undefined;
  /** Larger frames are recorded without their bytes. Default 7 MiB. */
  readonly frameBytes?: number;
  /** The source's key; see Original.identity in event.proto. Absent: frames are known by their masked bytes alone. */
  readonly identityKey?: Uint8Array | undefined;
  /** See RecordingTimes. */
  readonly replay?: ReplayTimes | undefined;
};

/** The outcome of a frame; the last two come with another. */
export type OnFrame = (channel: string, what: "recorded" | "repeated" | "unreadable" | "oversize") => void;

/** Receives what the recorder does, for metrics and for the push stream. */
export type SessionRecorderListener = {
  readonly frame?: OnFrame;
  readonly published?: (events: number) => void;
  readonly onPublishFailure?: (published: Exclude<PublishOutcome, { outcome: "acknowledged" }>) => void;
  readonly unknownChannel?: (channel: string) => void;
  /** Called with each connection's session as soon as it is known. */
  readonly session?: (session: string) => void;
  /** Called with the index up to which everything is in the log, whenever it may have grown. */
  readonly committed?: (index: bigint) => void;
  /** Called with each observation of a polled source; the result is called when everything that it reports is in the log. */
  readonly observation?: (channel: string, observation: Uint8Array, at: Timestamp) => () => void;
  /** Called with each list of a polled source that was heard. */
  readonly onSeen?: (collection: string, at: Timestamp) => void;
  /** Called with the upstream's answer about its state, recorded or not, once everything before it is in the log. */
  readonly observed?: (observed: Observed) => void;
};

/** The parts of a session recorder, live or imported, that the recorder of a push needs. */
export type PushedSession = AsyncDisposable & {
  /** Takes the next items, in order. Calls must not overlap. Rejects when another recorder has written to the log. */
  take(...items: readonly Item[]): Promise<void>;
  /** No item has come until this moment of the tap's clock. Not during a take. */
  advance(at: Timestamp): Promise<void>;
  /** True while passing time matters. */
  readonly waiting: boolean;
  /** Everything up to this index is in the log. */
  committed(): bigint;
  /** Resolves when everything that was taken so far and has left the replay sorter is in the log. */
  drained(): Promise<void>;
  /** The upstream is connected, as far as the tap has reported. */
  readonly connected: boolean;
  /** Resolves with what ended the writing. */
  readonly ended: Promise<Error>;
};
