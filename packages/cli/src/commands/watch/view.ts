import type { ReadStream, WriteStream } from "node:tty";
import type { Now } from "@tapedeck/client/lanes/now";
import { changesOf } from "./screen.ts";

export type LanesView = {
  readonly show: (now: Now) => void;
  readonly isConnected: (isOpen: boolean) => void;
  readonly end: () => void;
};

export type Terminal = {
  readonly out: WriteStream;
  readonly keyboard: ReadStream;
  /** Called for `q` and Ctrl-C. */
  readonly quit: () => void;
};

/** A screen that is drawn anew in a terminal, lines in a pipe. */
export async function lanesView(terminal: Terminal): Promise<LanesView> {
  if (!terminal.out.isTTY) return linesTo(terminal.out);
  const [{ createLogUpdate }, { TerminalView }] = await Promise.all([
    import("log-update"),
    import("./terminal-view.ts"),
  ]);
  return new TerminalView(terminal, createLogUpdate(terminal.out));
}

function linesTo(out: NodeJS.WritableStream): LanesView {
  const said = new Map<string, string>();
  return {
    show: (now) => {
      for (const line of changesOf(now, said, Date.now())) out.write(`${line}\n`);
    },
    isConnected: () => {},
    end: () => {},
  };
}
