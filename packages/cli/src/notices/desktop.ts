import { type ChildProcess, spawn } from "node:child_process";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
import { plainLine } from "../display/plain-line.ts";
import { onPath } from "../on-path.ts";

/** A notice on the desktop. A text may have several lines. */
export type Notice = { readonly title: string; readonly text: string };

/** The programs that show notices, on macOS and elsewhere. */
const programs = ["osascript", "notify-send"] as const;
type Program = (typeof programs)[number];

/** A program that hangs, as without a desktop, is ended. */
const timeoutMs = 10_000;
const maxTitle = 120;
const maxText = 600;

/** The arguments with which a program shows a notice. No shell reads them, and no text of an upstream becomes part of a script. */
export const argumentsOf: Readonly<Record<Program, (notice: Notice) => readonly string[]>> = {
  osascript: ({ title, text }) => [
    ...["-e", "on run argv"],
    ...["-e", "display notification (item 2 of argv) with title (item 1 of argv)"],
    ...["-e", "end run"],
    ...[title, text],
  ],
  "notify-send": ({ title, text }) => ["--app-name=Tapedeck", "--", title, asMarkup(text)],
};

/**
 * Shows notices on the desktop of this machine. Nothing waits for it, and it has neither the terminal nor the process group of the
 * command. What it can't show is reported once.
 */
export class Desktop {
  readonly #program = programs.find((program) => onPath(program) !== undefined);
  readonly #report: (line: string) => void;
  #isReported = false;

  /** `report`: is called once, with a line that says why notices can't be shown; where no program is there, at once. */
  constructor(report: (line: string) => void) {
    this.#report = report;
    if (this.#program === undefined) this.#failed(`neither ${programs.join(" nor ")} is on the PATH`);
  }

  show({ title, text }: Notice): void {
    if (this.#program === undefined) return;
    const program = this.#program;
    const shown = {
      title: cut(plainLine(title), maxTitle),
      text: cut(text.split("\n").map(plainLine).join("\n"), maxText),
    };
    const child = started(program, argumentsOf[program](shown));
    if (child === undefined) {
      this.#failed(`${program} can't be started`);
      return;
    }
    child.unref();
    const timer = startTimer(() => child.kill("SIGKILL"), timeoutMs).unref();
    child.once("exit", (code, signal) => {
      stopTimer(timer);
      if (signal === "SIGKILL") this.#failed(`${program} does not end`);
      else if (code !== 0) this.#failed(`${program} ended with ${code ?? signal}`);
    });
    child.once("error", () => {
      stopTimer(timer);
      this.#failed(`${program} can't be started`);
    });
  }

  #failed(why: string): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#report(`notices can't be shown: ${why}`);
  }
}

/** Undefined: the system has not even tried to start it, as for want of memory. */
function started(program: Program, args: readonly string[]): ChildProcess | undefined {
  const { TAPEDECK_TOKEN: _, ...env } = process.env;
  try {
    return spawn(program, args, { env, stdio: "ignore", detached: true });
  } catch {
    return undefined;
  }
}

/** notify-send reads escapes of C in a text, and the desktop markup. */
function asMarkup(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\\", "\\\\");
}

function cut(text: string, max: number): string {
  const characters = [...text];
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join("")}…`;
}
