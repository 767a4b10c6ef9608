import type { ControlAnswer, ControlRequest, Item } from "@tapedeck/proto/tapedeck/v1/recorder";

import type { UpstreamStream } from "./push/relayed-streams.ts";

/** An item without its index, which the spill assigns. */
export type TapItem = Omit<Item, "index" | "$unknown">;

/** What a tap gets: its upstream's address, and where its items go. */
export type TapOptions = {
  /** "127.0.0.1:50051". */
  readonly address: string;
  /** Takes an item at once and never makes the upstream wait. */
  readonly emit: (item: TapItem) => void;
  readonly signal: AbortSignal;
  /** Channels that the configuration skips (skaffold, rkt: "logs"). */
  readonly skipChannels?: readonly string[];
  /** Settings of this upstream, by name (rkt: "interval" and "timeout", in ms). */
  readonly settings?: Readonly<Record<string, string>>;
  /** Absent where the tap lives as long as its upstream (`tapedeck run`). */
  readonly memory?: TapMemory;
};

/** Stores what a tap must know after it was killed and restarted, because its upstream's process may still live. */
export type TapMemory = {
  /** The memory that this tap or an earlier one saved last; undefined if there is none. */
  readonly load: () => Remembered | undefined;
  /** Replaces what is stored before it returns. Never throws. */
  readonly save: (remembered: Remembered) => void;
};

/** What a tap remembers of its upstream between two runs. */
export type Remembered = {
  /** "127.0.0.1:50051": the rest is about the process that listened there. */
  readonly address: string;
  /** The latest connection, open or not. */
  readonly connection: string;
  readonly broken?: BrokenChannels | undefined;
};

/** Channels that must not be opened again on the same process. */
export type BrokenChannels = {
  readonly channels: readonly string[];
  /**
   * Identifies that process by another channel, which replays everything since the process began: a message of that time
   * (the message's own, in ms since 1970) had come. Absent: the process can't be identified.
   */
  readonly heard?: { readonly channel: string; readonly at: number } | undefined;
};

/** The upstream's side of the recorder: dials, reads and polls, and concludes nothing. */
export type UpstreamTap = {
  /** The upstream comes and goes with commands, and the process that starts such a command may record it. */
  readonly livesInCommand: boolean;
  /**
   * Dials, reads and dials again until the signal aborts, and waits for the next process when one ends. Never throws
   * because of the upstream: its failures become items. Resolves after the tap has left the upstream in an idle moment.
   */
  readonly run: (options: TapOptions) => RunningTap;
};

/** A tap that runs until it is stopped. */
export type RunningTap = {
  readonly done: Promise<void>;
  /**
   * Makes a control call on the current connection. Code 14 without one. The answer has `effect_ms` when everything that the
   * call has changed was emitted before it; the push adds `effect_index`.
   */
  readonly control: (request: ControlRequest) => Promise<ControlAnswer>;
  /**
   * Opens a stream to the upstream, by its full gRPC method. Undefined without a connection, or if clients send on no such
   * stream of this upstream.
   */
  readonly stream?: (method: string) => UpstreamStream | undefined;
};
