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
 * Shows notices on the desktop of this machine; does nothing where none of the programs is on the PATH. Nothing waits for it, and it
 * has neither the terminal nor the process group of the command.
 */
export class Desktop {
  readonly #program = programs.find((program) => onPath(program) !== undefined);

  show({ title, text }: Notice): void {
    if (this.#program === undefined) return;
    const shown = {
      title: cut(plainLine(title), maxTitle),
      text: cut(text.split("\n").map(plainLine).join("\n"), maxText),
    };
    const child = started(this.#program, argumentsOf[this.#program](shown));
    if (child === undefined) return;
    child.unref();
    const timer = startTimer(() => child.kill("SIGKILL"), timeoutMs).unref();
    const ended = () => stopTimer(timer);
    child.once("exit", ended).once("error", ended);
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
