import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import type { MaskedBytes } from "../secrets/mask-bytes.ts";
import type { MaskedFrame, Piece } from "../secrets/pieces.ts";
import type { Fact } from "./fact.ts";
import type { Observing } from "./inventory/observing.ts";
import type { ThreadMasks } from "./mask-thread/thread-masks.ts";

export type Normalizer = {
  /** Channels that carry the upstream's own frames, besides "tapedeck" and those of `observing`. */
  readonly channels: readonly ChannelNormalizer[];
  /** Present for an upstream that is polled. */
  readonly observing?: Observing;
  /** Masks secrets in string fields in place, with the same length. */
  readonly mask: (channel: string, bytes: Uint8Array) => MaskedFrame;
  /**
   * Masks output that comes in pieces: a frame after the (masked) end of the previous piece of its stream, so that a
   * secret that was cut in two is masked in both.
   */
  readonly maskAfter?: (channel: string, bytes: Uint8Array, tail: string) => MaskedBytes & { readonly text: string };
  /** `mask` and `maskAfter` in another thread, for large frames. Absent: they run in this one. */
  readonly maskInThread?: ThreadMasks;
  /** The output of a recorded frame, without masking it again. */
  readonly pieceOf?: (channel: string, bytes: Uint8Array) => Piece | undefined;
  /** True if two states differ in what session.described is for (not in statuses); with `whole`, in anything. */
  readonly stateDiffers: (channel: string, before: Uint8Array, after: Uint8Array, whole?: boolean) => boolean;
  /** Splits a control call into the steps that the upstream can take one after the other (Skaffold: one intent at a time). */
  readonly controlSteps: (method: string, request: Uint8Array) => readonly { method: string; request: Uint8Array }[];
  /**
   * For a control call that puts an event into the upstream's own stream (Skaffold's Handle): its channel, and whether a
   * frame is that event (the upstream stamps it, so times are not compared).
   */
  readonly injects: (
    method: string,
    request: Uint8Array,
  ) => { readonly channel: string; readonly matches: (frame: Uint8Array) => boolean } | undefined;
};

/** All channels of an upstream but "tapedeck". */
export function channelNames({ channels, observing }: Pick<Normalizer, "channels" | "observing">): readonly string[] {
  return [...channels.map(({ name }) => name), ...(observing?.channels ?? [])];
}

export type ChannelNormalizer = {
  readonly name: string;
  /** Full name of the protobuf message of a frame, for example "proto.LogEntry". */
  readonly messageType: string;
  /** A new connection repeats everything since the process began (Skaffold's v1 and v2). */
  readonly replays: boolean;
  /** The upstream's own time of a frame; undefined if it can't be read. */
  readonly timestampOf: (bytes: Uint8Array) => Timestamp | undefined;
  /** A reader that remembers its own channel only (runner, loop), so that other channels' timing can't matter. */
  readonly reader: () => FrameReader;
  /** The channel that reports what this one leaves out, and the reader for an imported file that doesn't have it. */
  readonly without?: { readonly channel: string; readonly reader: () => FrameReader };
};

export type FrameReader = {
  /**
   * One fact or more; total: bytes that can't be read give upstream.unreadable. `injected` (default false): a client put
   * the frame into the upstream's stream, so it reports nothing that the upstream did.
   */
  readonly read: (bytes: Uint8Array, injected?: boolean) => readonly [Fact, ...Fact[]];
  /** Brings the memory to its state after this event, read back from the log in order. */
  readonly resume: (event: Event) => void;
};
