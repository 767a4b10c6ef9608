import { print } from "../../display/output.ts";
import type { LanesView, Terminal } from "./lanes-view.ts";
import { changesOf } from "./screen.ts";

/** A screen that is drawn anew in a terminal, lines in a pipe. */
export async function lanesView(terminal: Terminal): Promise<LanesView> {
  if (!terminal.out.isTTY) return lines();
  const [{ createLogUpdate }, { TerminalView }] = await Promise.all([
    import("log-update"),
    import("./terminal-view.ts"),
  ]);
  return new TerminalView(terminal, createLogUpdate(terminal.out));
}

function lines(): LanesView {
  const printed = new Map<string, string>();
  return {
    show: (now) => {
      for (const line of changesOf(now, printed, Date.now())) print(line);
    },
    isConnected: () => {},
    end: () => {},
  };
}
