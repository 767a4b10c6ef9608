import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { ControlAnswer, ControlRequest, Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { Kind } from "@tapedeck/shared/events/kinds";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { Apart } from "../secrets/ahead/masked-apart.ts";
import type { Piece } from "../secrets/pieces.ts";
import type { Looking } from "./inventory/observing.ts";

/** What an upstream brings: how it is tapped (dials, knows no NATS) and how its frames are read (pure, dials nothing). */
export type Upstream = {
  readonly name: UpstreamName;
  readonly tap: UpstreamTap;
  readonly reading: UpstreamReading;
  /** It comes and goes with commands, and whoever starts such a command may record it. */
  readonly livesInCommand: boolean;
};

/** Everything of an item but its index, which the spill gives. */
export type TapItem = Omit<Item, "index" | "$unknown">;

export type TapOptions = {
  /** "127.0.0.1:50051". */
  readonly address: string;
  /** Takes an item at once, never makes the upstream wait. */
  readonly emit: (item: TapItem) => void;
  readonly signal: AbortSignal;
  /** Channels left out by configuration (skaffold, rkt: "logs"). */
  readonly skipChannels?: readonly string[];
  /** Of this upstream alone, by name (rkt: "interval" and "timeout", in ms). */
  readonly settings?: Readonly<Record<string, string>>;
  /** Absent where the tap lives as long as what it taps (`tapedeck run`). */
  readonly memory?: TapMemory;
};

/** Keeps what a tap has to know again when it was killed and starts while its upstream's process may live on. */
export type TapMemory = {
  /** What was saved last, by this tap or one before it; undefined when there is nothing. */
  readonly load: () => Remembered | undefined;
  /** Keeps this instead, before it returns. Never throws. */
  readonly save: (remembered: Remembered) => void;
};

export type Remembered = {
  /** "127.0.0.1:50051": all of it is about whoever listened there. */
  readonly address: string;
  /** The last one that was made, open or not. */
  readonly connection: string;
  readonly broken?: BrokenChannels | undefined;
};

/** Channels that the process at the other end must not be asked for again. */
export type BrokenChannels = {
  readonly channels: readonly string[];
  /**
   * How to know that process by another of its channels, which repeats all since it began: this one had said something
   * of that moment (its own time, in ms since 1970). Absent: it can't be known again.
   */
  readonly heard?: { readonly channel: string; readonly at: number } | undefined;
};

export type UpstreamTap = {
  /**
   * Dials, drains and dials again until the signal; waits for the next process when one ends. Never throws because of
   * the upstream: what goes wrong there becomes an item. Resolves after having left the upstream in an idle moment.
   */
  readonly run: (options: TapOptions) => RunningTap;
};

export type RunningTap = {
  readonly done: Promise<void>;
  /** Makes a control call on the current connection. Code 14 when there is none. */
  readonly control: (request: ControlRequest) => Promise<ControlAnswer>;
};

/** Seconds since 1970 and nanoseconds, as protobuf's Timestamp. */
export type Moment = { readonly seconds: bigint; readonly nanos: number };

/** One fact that a frame tells. Identity, session, ordinals and observed time are record's business. */
export type Fact = {
  readonly kind: Kind;
  readonly subject?: string;
  readonly outcome?: Event["outcome"];
  readonly error?: Event["error"];
  readonly summary: string;
  /** The upstream's own time; absent: when it was observed. */
  readonly occurredAt?: Moment;
  /** Nobody saw it: it happened after this, and not later than it was observed (or than occurredAt, where given). */
  readonly notBefore?: Moment;
  readonly operation?: Event["operation"];
  readonly inferred?: boolean;
  readonly detail?: Event["detail"];
};

export type UpstreamReading = {
  /** Channels that carry the upstream's own frames, besides "tapedeck" and those of `looking`. */
  readonly channels: readonly ChannelReading[];
  /** Of an upstream that has to be looked at again and again. */
  readonly looking?: Looking;
  /** Masks secrets in string fields in place (same length). */
  readonly mask: (channel: string, bytes: Uint8Array) => MaskedFrame;
  /**
   * Of output that comes in pieces: a masked frame, and the end (as masked) of the piece before it in its stream, so that
   * a secret that was cut in two is masked in both.
   */
  readonly maskAfter?: (channel: string, bytes: Uint8Array, tail: string) => Masked & { readonly text: string };
  /** `mask` and `maskAfter` in another thread, for large frames. Absent: those hold this one. */
  readonly apart?: Apart;
  /** What a frame has printed, as it is: of one that was recorded, without masking it again. */
  readonly pieceOf?: (channel: string, bytes: Uint8Array) => Piece | undefined;
  /** True when two states differ in what session.described is for (not in statuses); with `whole`, in anything. */
  readonly describedDiffers: (channel: string, before: Uint8Array, after: Uint8Array, whole?: boolean) => boolean;
  /** A control call as the steps that the upstream can take one after the other (Skaffold: one intent at a time). */
  readonly controlSteps: (method: string, request: Uint8Array) => readonly { method: string; request: Uint8Array }[];
  /**
   * When this control call puts an event into the upstream's own stream (Skaffold's Handle): on which channel, and
   * whether a frame is that event (the upstream stamps it, so times are not compared).
   */
  readonly injects: (
    method: string,
    request: Uint8Array,
  ) => { readonly channel: string; readonly matches: (frame: Uint8Array) => boolean } | undefined;
};

type Masked = { readonly bytes: Uint8Array; readonly redacted: number };

/** `piece`: what it printed, when that is a piece of a stream of output. */
export type MaskedFrame = Masked & { readonly piece?: Piece };

/** All channels of an upstream but "tapedeck". */
export function channelNames({ channels, looking }: Pick<UpstreamReading, "channels" | "looking">): readonly string[] {
  return [...channels.map(({ name }) => name), ...(looking?.channels ?? [])];
}

export type ChannelReading = {
  readonly name: string;
  /** Full name of the protobuf message of a frame, for example "proto.LogEntry". */
  readonly messageType: string;
  /** A new connection repeats everything since the process began (Skaffold's v1 and v2). */
  readonly replays: boolean;
  /** The upstream's own time of a frame; undefined when it can't be read. */
  readonly momentOf: (bytes: Uint8Array) => Moment | undefined;
  /** A reader with a memory of its own channel only (runner, loop), so that other channels' timing can't matter. */
  readonly reader: () => FrameReader;
};

export type FrameReader = {
  /** One fact or more; total: bytes that can't be read give upstream.unreadable. */
  readonly read: (bytes: Uint8Array) => readonly [Fact, ...Fact[]];
  /** Brings the memory to where it was after this event, read back from the log in order. */
  readonly resume: (event: Event) => void;
};
