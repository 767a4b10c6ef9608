import type { ReadStream, WriteStream } from "node:tty";
import type { Now } from "@tapedeck/client/lanes/now";

export type LanesView = {
  readonly show: (now: Now) => void;
  readonly isConnected: (isOpen: boolean) => void;
  readonly end: () => void;
};

export type Terminal = {
  readonly out: WriteStream;
  readonly keyboard: ReadStream;
  /** Shown while there are no sources. */
  readonly none: string;
  /** Called for `q` and Ctrl-C. */
  readonly quit: () => void;
};
