import type { Event, GapDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Look } from "@tapedeck/proto/tapedeck/v1/look";
import type { Moment } from "@tapedeck/shared/time/moment";
import type { Fact } from "../fact.ts";

/**
 * How facts are concluded about an upstream that has no event stream, or one that tells only a part: its tap looks again and again (each frame of these
 * channels is a tapedeck.v1.Look), and a watcher compares what it sees with what it remembers.
 */
export type Observing = {
  readonly channels: readonly string[];
  /** Masks the secrets of one entry (a pod, an image, lines), in place and with the same length. */
  readonly mask: WatchOptions["mask"];
  /** A mask that knows what a large look holds: that was masked in another thread. Absent: it is masked in this one. */
  readonly maskInThread?: (channel: string, look: Uint8Array) => Promise<WatchOptions["mask"]>;
  /** Where entries are pieces of output. */
  readonly maskAfter?: WatchOptions["maskAfter"];
  /** One for each session that a recorder takes part in. */
  readonly watch: (options: WatchOptions) => Watcher<Observed>;
};

export type WatchOptions = {
  /** What the session's setting makes of `Looking.mask`; applied to all that is told. What is not yet masked is only compared. */
  readonly mask: (messageType: string, bytes: Uint8Array) => { readonly bytes: Uint8Array; readonly redacted: number };
  /** A masked piece of output, after the end (as masked) of the piece before it. Absent: nothing is masked, or there are none. */
  readonly maskAfter?:
    | ((
        messageType: string,
        bytes: Uint8Array,
        tail: string,
      ) => { readonly bytes: Uint8Array; readonly redacted: number })
    | undefined;
  /** Of the source, as hello brought them; empty: all by default. */
  readonly settings: Readonly<Record<string, string>>;
  /** The log takes no larger frames: what is larger can't be remembered. Default 7 MiB. */
  readonly frameBytes?: number;
  /** Seconds after which the log drops text: what is only remembered by that has to be described before. Absent: never. */
  readonly textTtl?: number | undefined;
};

/**
 * Pure but for its memory: no clock, no network; the same looks at the same times give the same facts. Total: looks that
 * can't be read give upstream.unreadable.
 *
 * Its memory is in the log. Each channel begins with `host.described` (all of it, in parts); the watcher gives that by
 * itself at the first look of a session, and again when 1,000 events of the channel have come since. At the start
 * `resume` gets, channel by channel, the last description that is complete and every event after it. What it only
 * suspects (a pod that one look missed) is not in the log and is found again by the looks that come.
 */
export type Watcher<Of extends Observed = readonly ObservationOutcome[]> = {
  readonly resume: (event: Event) => void;
  /** A new connection: from the last good look to the next one nobody looked. */
  readonly connected: () => void;
  /**
   * A recorder's start, while its tap went on looking: what the recorder before it suspected, or held back, is not known.
   * Absent where that is no less than a new connection.
   */
  readonly restarted?: () => void;
  /**
   * What this look, seen at that moment, tells: nothing, most often. May be concluded while it is read (a list has
   * thousands of jobs), so it has to be read to its end before the next look.
   */
  readonly observe: (channel: string, look: Look, at: Moment) => Of;
};

/** What a look tells, with pauses in work that tells nothing (a list has thousands of entries). */
export type Observed = Iterable<ObservationOutcome | YieldPoint>;

/** Not more to tell so far: others may have their turn before the next entry is read. */
export type YieldPoint = { readonly what: "yield" };

export const yieldPoint: YieldPoint = { what: "yield" };

/** Of what a look tells all but the pauses. */
export function outcomesOf(told: Observed): readonly ObservationOutcome[] {
  return [...told].flatMap((one) => (one.what === "yield" ? [] : [one]));
}

export type ObservationOutcome =
  | {
      readonly what: "frame";
      /** The upstream's message, as masked; absent for what is not there any more. */
      readonly original?: { readonly type: string; readonly bytes: Uint8Array; readonly redacted: number };
      readonly facts: readonly [Fact, ...Fact[]];
      /** Of the look that showed it, which may be an earlier one than that which made it certain. */
      readonly observedAt: Moment;
    }
  | {
      /** Something may have been missed on the channel between these two moments. */
      readonly what: "gap";
      readonly reason: string;
      readonly after: Moment | undefined;
      readonly until: Moment;
      /** What may be missing of a job's output; absent: anything. */
      readonly output?: GapDetail["output"];
    }
  | {
      /**
       * This look is at another lifetime of the upstream than all before it (a server that was started anew at the same
       * address). What was seen before it belongs to the session that ends here. The last thing that a look tells: the
       * same look is then shown to the watcher of the session that begins.
       */
      readonly what: "another session";
    };

/** A message that stands in a look, and its full name. */
export type ObservedEntry = { readonly type: string; readonly bytes: Uint8Array };
