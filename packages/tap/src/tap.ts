import type { ControlAnswer, ControlRequest, Item } from "@tapedeck/proto/tapedeck/v1/recorder";

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

/** An upstream's side of the recorder: it dials, drains and polls, and concludes nothing. */
export type UpstreamTap = {
  /** The upstream comes and goes with commands, and whoever starts such a command may record it. */
  readonly livesInCommand: boolean;
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
