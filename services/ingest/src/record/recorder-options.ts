import type { Log } from "@tapedeck/shared/log/jetstream";
import type { LogSurvey } from "@tapedeck/shared/log/log";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { SourceName } from "@tapedeck/shared/source";
import type { NatsConnection } from "nats";
import type { Normalizer } from "../normalize/normalizer.ts";
import type { ReplayTimes } from "./frames/replay-sorter.ts";
import type { LogEnds } from "./journal/ends.ts";
import type { Leases } from "./journal/lease.ts";
import type { SourceEnds } from "./journal/load-history.ts";
import type { SourceJournalOptions } from "./journal/source-journal.ts";
import type { SessionRecorderListener } from "./pushed-session.ts";

/** The storage for recording, all of it on NATS: one connection, the leases, and a store for each workspace. */
export type Stores = {
  readonly nats: NatsConnection;
  readonly leases: Leases;
  /**
   * That of a workspace, whose log is made if there is none. Rejects with LogUnusableError, or because NATS does not answer;
   * the next call tries again.
   */
  of(workspace: string): Promise<Store>;
  /** The workspaces that have a log. Rejects when NATS can't be asked. */
  names(): Promise<readonly string[]>;
};

/** The storage for recording in a workspace. */
export type Store = {
  readonly nats: NatsConnection;
  readonly workspace: string;
  readonly log: Omit<SourceJournalOptions["log"], "ends"> & {
    readonly reader: LogSurvey;
    readonly epoch: string;
    readonly ends?: (SourceEnds & Pick<LogEnds, "forget" | "reserve">) | undefined;
    readonly stored: Log["stored"];
  };
  /**
   * Rejects with one sentence if the log has lost its end: new events would get positions that were given before; and when its
   * workspace is being removed.
   */
  readonly assertWhole: () => Promise<void>;
  readonly leases: Leases;
  /** Larger frames don't fit into the log. */
  readonly frameBytes: number;
  /** See Original.identity in event.proto. */
  readonly identityKey?: Uint8Array;
};

/**
 * Times after which something is taken not to come any more. Where upstream and tap share a busy machine, it may come
 * later than by default.
 */
export type RecordingTimes = {
  /** For the frames that a channel repeats after connecting; see ReplaySorter. */
  readonly replay?: ReplayTimes;
  /** See ControlOptions. */
  readonly loopStartMs?: number;
};

/** How many sources may be made. A source costs a lease, an end beside the log and rows for ever. */
export type NewSourceBounds = {
  /** New sources of one token within an hour, by each ingest. */
  readonly perTokenHour: number;
  /** Sources of one workspace. */
  readonly perWorkspace: number;
};

/** What a refused recording ran into. */
export type RecordingBound = "sources of the token" | "sources of the workspace" | "redact";

export type RecorderOptions = {
  /** Undefined while NATS is away at the start. */
  readonly stores: () => Stores | undefined;
  readonly normalizers: Readonly<Record<string, Normalizer>>;
  readonly logger: Logger;
  /** Seconds that text of a workspace lives in the log; absent, or undefined: forever. */
  readonly textTtl?: (workspace: string) => number | undefined;
  /** A session whose tap has not come back after this time is considered over. */
  readonly lostAfterMs: number;
  /** A source is reported as lost after this time; see LostSources. */
  readonly noticeMs?: number;
  readonly times?: RecordingTimes | undefined;
  /** Default: no bounds. */
  readonly newSources?: NewSourceBounds | undefined;
  /** Refuses recordings with `redact: off`. */
  readonly requireRedact?: boolean | undefined;
  /** Called when a recording is refused, with what it ran into. */
  readonly onRefused?: (bound: RecordingBound) => void;
  readonly listener?: (source: SourceName) => SessionRecorderListener;
  readonly onRecording?: (source: SourceName, state: "began" | "ended" | "reconnected") => void;
};
