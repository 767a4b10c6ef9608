import type { WriteStream } from "node:tty";
import { styleText } from "node:util";
import type { Now } from "@tapedeck/client/lanes/now";
import { changesOf, screenOf } from "./screen.ts";

export type LanesView = {
  readonly show: (now: Now) => void;
  readonly isConnected: (isOpen: boolean) => void;
  readonly end: () => void;
};

/** A screen that is drawn anew in a terminal, lines in a pipe. */
export async function lanesView(out: WriteStream): Promise<LanesView> {
  return out.isTTY ? screenIn(out) : linesTo(out);
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

/** The least time between two drawings for events; clocks keep running. */
const leastMs = 100;
const tickMs = 1_000;

async function screenIn(out: WriteStream): Promise<LanesView> {
  const { createLogUpdate } = await import("log-update");
  const update = createLogUpdate(out);
  let now: Now | undefined;
  let lostAt: number | undefined;
  let due: NodeJS.Timeout | undefined;
  const draw = () => {
    clearTimeout(due);
    due = undefined;
    if (now === undefined) return;
    const at = Date.now();
    const lost = lostAt === undefined ? [] : [styleText("yellow", lostText(at - lostAt))];
    const rows = out.rows - lost.length;
    update([...lost, ...screenOf(now, { columns: out.columns, rows, at })].join("\n"));
  };
  const tick = setInterval(draw, tickMs);
  out.on("resize", draw);
  return {
    show(shown) {
      const isFirst = now === undefined;
      now = shown;
      if (isFirst) draw();
      else due ??= setTimeout(draw, leastMs);
    },
    isConnected(isOpen) {
      lostAt = isOpen ? undefined : (lostAt ?? Date.now());
    },
    end() {
      clearInterval(tick);
      draw();
      out.off("resize", draw);
      update.done();
    },
  };
}

function lostText(ms: number): string {
  return `no connection for ${Math.round(ms / 1_000)} s; what follows is what was known then`;
}
