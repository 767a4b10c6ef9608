import { styleText } from "node:util";
import { ageText } from "@tapedeck/client/lanes/format";
import type { Now } from "@tapedeck/client/lanes/now";
import { terminalText } from "@tapedeck/shared/output/terminal-text";
import { startInterval, startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import type { createLogUpdate } from "log-update";
import type { LanesView, Terminal } from "./lanes-view.ts";
import { screenOf } from "./screen.ts";

/** The least time between two drawings for events; clocks keep running. */
const leastMs = 100;
const tickMs = 1_000;

/** The alternate screen of a terminal has no history and is not wrapped anew when its size changes. */
const alternateScreen = { enter: "\u001b[?1049h\u001b[H", leave: "\u001b[?1049l" };
// biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one.
const isColour = /^\u001b\[\d{1,2}m$/;
const ctrlC = "\u0003";
const ctrlZ = "\u001a";

/** Draws on the alternate screen. At its end the terminal is as it was before, and has the last drawing below. */
export class TerminalView implements LanesView {
  readonly #terminal: Terminal;
  readonly #update: ReturnType<typeof createLogUpdate>;
  readonly #tick: Timer;
  #now: Now | undefined;
  #lostAt: number | undefined;
  #due: Timer | undefined;

  constructor(terminal: Terminal, update: ReturnType<typeof createLogUpdate>) {
    this.#terminal = terminal;
    this.#update = update;
    this.#enter();
    terminal.out.on("resize", this.#draw);
    if (terminal.keyboard.isTTY) terminal.keyboard.on("data", this.#pressed);
    this.#tick = startInterval(this.#draw, tickMs);
  }

  show(now: Now): void {
    const isFirst = this.#now === undefined;
    this.#now = now;
    if (isFirst) this.#draw();
    else this.#due ??= startTimer(this.#draw, leastMs);
  }

  isConnected(isOpen: boolean): void {
    this.#lostAt = isOpen ? undefined : (this.#lostAt ?? Date.now());
    this.#draw();
  }

  end(): void {
    stopTimer(this.#tick);
    stopTimer(this.#due);
    const { out, keyboard } = this.#terminal;
    out.off("resize", this.#draw);
    keyboard.off("data", this.#pressed);
    this.#leave();
    keyboard.pause();
    if (this.#now !== undefined) out.write(`${this.#text(this.#now)}\n`);
  }

  readonly #draw = (): void => {
    stopTimer(this.#due);
    this.#due = undefined;
    if (this.#now !== undefined) this.#update(this.#text(this.#now));
  };

  /** Only colours of the drawing itself pass: what is drawn was recorded. */
  #text(now: Now): string {
    return terminalText(this.#lines(now).join("\n"), (sequence) => (isColour.test(sequence) ? sequence : undefined));
  }

  #lines(now: Now): readonly string[] {
    const { columns, rows } = this.#terminal.out;
    const at = Date.now();
    const lost = this.#lostAt === undefined ? [] : [styleText("yellow", lostText(at - this.#lostAt).slice(0, columns))];
    const { none } = this.#terminal;
    return [...lost, ...screenOf(now, { columns, rows: rows - lost.length, at, none })];
  }

  #enter(): void {
    const { out, keyboard } = this.#terminal;
    out.write(alternateScreen.enter);
    if (keyboard.isTTY) keyboard.setRawMode(true);
    this.#draw();
  }

  #leave(): void {
    const { out, keyboard } = this.#terminal;
    this.#update.done();
    out.write(alternateScreen.leave);
    if (keyboard.isTTY) keyboard.setRawMode(false);
  }

  /** In raw mode Ctrl-C and Ctrl-Z are keys like others. */
  readonly #pressed = (keys: Buffer): void => {
    const pressed = keys.toString();
    if (/^q$/i.test(pressed) || pressed.includes(ctrlC)) this.#terminal.quit();
    else if (pressed.includes(ctrlZ)) this.#suspend();
  };

  #suspend(): void {
    this.#leave();
    process.once("SIGCONT", () => this.#enter());
    process.kill(process.pid, "SIGTSTP");
  }
}

function lostText(ms: number): string {
  return `no connection (${ageText(ms)}); showing the last known state`;
}
