import type { Event, GapDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../fact.ts";

/**
 * Concludes facts about an upstream that has no event stream, or a partial one. Its tap polls it (each frame of these
 * channels is a tapedeck.v1.Observation, one observation), and a watcher compares the observations with what it remembers.
 */
export type Observing = {
  readonly channels: readonly string[];
  /** Masks the secrets of one entry (a pod, an image, lines), in place and with the same length. */
  readonly mask: WatcherOptions["mask"];
  /** Masks the entries of a large observation in another thread, and gives a mask that knows them. Absent: it is masked in this one. */
  readonly maskInThread?: (channel: string, observation: Uint8Array) => Promise<WatcherOptions["mask"]>;
  /** Present if entries are pieces of output. */
  readonly maskAfter?: WatcherOptions["maskAfter"];
  /** One for each session that a recorder takes part in. */
  readonly watch: (options: WatcherOptions) => Watcher<Observed>;
};

export type WatcherOptions = {
  /** `Observing.mask`, as the session's setting allows. All outcomes are masked; unmasked bytes are only compared. */
  readonly mask: (messageType: string, bytes: Uint8Array) => { readonly bytes: Uint8Array; readonly redacted: number };
  /** Masks a masked piece of output after the end of the piece before it. Absent: nothing is masked, or there is no output. */
  readonly maskAfter?:
    | ((
        messageType: string,
        bytes: Uint8Array,
        tail: string,
      ) => { readonly bytes: Uint8Array; readonly redacted: number })
    | undefined;
  /** A keyed hash of bytes before masking; see Original.identity in event.proto. Absent: none is made. */
  readonly identityOf?: ((bytes: Uint8Array) => Buffer) | undefined;
  /** The settings of the source, from hello; empty: defaults. */
  readonly settings: Readonly<Record<string, string>>;
  /** The log takes no larger frames, so larger items can't be remembered. Default 7 MiB. */
  readonly frameBytes?: number;
  /** Seconds after which the log drops text. Memory that is in text alone has to be described before. Absent: never. */
  readonly textTtl?: number | undefined;
};

/**
 * Pure but for its memory: no clock, no network; the same observations at the same times give the same facts. Total:
 * observations that can't be read give upstream.unreadable.
 *
 * Its memory is in the log. Each channel begins with `inventory.described` (all of it, in parts). The watcher gives that at
 * the first observation of a session, and again after 1,000 events of the channel. At the start `resume` gets, channel by
 * channel, the last complete description and every event after it. Suspicions (a pod that one list lacks) are not in the
 * log; the observations that follow raise them again.
 */
export type Watcher<Of extends Observed = readonly ObservationOutcome[]> = {
  readonly resume: (event: Event) => void;
  /** A new connection: nothing was observed from the last successful observation to the next one. */
  readonly connected: () => void;
  /**
   * A recorder's start, while its tap continued polling: the former recorder's suspicions and held facts are unknown.
   * Absent: the same as a new connection.
   */
  readonly restarted?: () => void;
  /**
   * The outcomes of an observation at that moment: none, most often. They may be concluded while they are read (a list
   * has thousands of jobs), so they have to be read to their end before the next observation.
   */
  readonly observe: (channel: string, observation: Observation, at: Timestamp) => Of;
};

/** The outcomes of an observation, with yield points in work without outcomes (a list has thousands of entries). */
export type Observed = Iterable<ObservationOutcome | YieldPoint>;

/** No outcome so far: the caller may yield to the event loop before the next entry is read. */
export type YieldPoint = { readonly what: "yield" };

export const yieldPoint: YieldPoint = { what: "yield" };

/** The outcomes without the yield points. */
export function outcomesOf(observed: Observed): readonly ObservationOutcome[] {
  return [...observed].flatMap((one) => (one.what === "yield" ? [] : [one]));
}

export type ObservationOutcome =
  | {
      readonly what: "frame";
      /** The upstream's message, masked; absent for an item that is gone. */
      readonly original?: {
        readonly type: string;
        readonly bytes: Uint8Array;
        readonly redacted: number;
        /** See Original.identity in event.proto. */
        readonly identity?: Buffer | undefined;
      };
      readonly facts: readonly [Fact, ...Fact[]];
      /** The time of the observation that showed it, which may be earlier than the one that made it certain. */
      readonly observedAt: Timestamp;
      /** That observation showed this item alone, and nothing of the others. */
      readonly isSingleItem?: boolean;
    }
  | {
      /** Something may have been missed on the channel between these two moments. */
      readonly what: "gap";
      readonly reason: string;
      readonly after: Timestamp | undefined;
      readonly until: Timestamp;
      /** The part of a job's output that may be missing; absent: anything. */
      readonly output?: GapDetail["output"];
    }
  | {
      /**
       * This observation is of another lifetime of the upstream than all before it (a server was restarted at the same
       * address). The outcomes before this one belong to the session that ends here. It is always the last outcome: the
       * same observation is then given to the watcher of the session that begins.
       */
      readonly what: "another session";
    };

/** The outcomes of one observation, read one by one. */
export type Outcomes = Generator<ObservationOutcome | YieldPoint, void>;

/** A message that an observation holds, and its full name. */
export type ObservedEntry = { readonly type: string; readonly bytes: Uint8Array };
