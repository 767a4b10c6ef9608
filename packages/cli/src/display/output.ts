import { escapedJson, terminalText } from "@tapedeck/shared/output/terminal-text";
import { ownColour } from "./colour.ts";

const { stdout, stderr } = process;
// The terminal is gone, or its disk full, so nothing can be said about it.
stderr.on("error", () => {});

/**
 * All that the CLI prints passes here: names, messages and log lines are whatever a tool or a server said, and must not
 * reach the terminal as they are. Only our own colours stay.
 */
export function print(text: string): void {
  write(`${text}\n`);
}

/** Does what `print` does, without an end of line. */
export function write(text: string): void {
  stdout.write(cleaned(text));
}

/** On stderr, as stdout is for programs. */
export function printError(text: string): void {
  ask(`${text}\n`);
}

/** On stderr without an end of line: the answer is typed behind it. */
export function ask(question: string): void {
  stderr.write(cleaned(question));
}

/** One line for programs. Characters that a terminal obeys are escaped. */
export function printJson(value: unknown): void {
  print(jsonText(value));
}

export function jsonText(value: unknown): string {
  return escapedJson(JSON.stringify(value));
}

/** For what a library writes by itself. */
export function cleaned(text: string): string {
  return terminalText(text, ownColour);
}

/** Data for a program or a file, which are not cleaned: a session file, a page. A terminal is drawn with it, too. */
export const rawOutput = stdout;
export const rawErrors = stderr;

/** What the recorded command itself writes to its stderr. */
export function writeRawError(bytes: Buffer): void {
  stderr.write(bytes);
}

/** Called once, when stdout can't be written any more; at the latest when the process ends. */
export function onLostOutput(lost: (error: NodeJS.ErrnoException) => void): void {
  let isKnown = false;
  const report = (error: Error | null) => {
    if (isKnown || error === null) return;
    isKnown = true;
    lost(error);
  };
  stdout.on("error", report);
  process.on("exit", () => report(stdout.errored));
}

/** The columns of stdout; undefined in a pipe. */
export function outputColumns(): number | undefined {
  return stdout.columns || undefined;
}

/** Whether a person sees what is printed as an error. */
export function isErrorTerminal(): boolean {
  return stderr.isTTY === true;
}

/**
 * Node makes pipes non-blocking. All processes that have a pipe share that, and those that don't expect it fail when it is
 * full or empty: to be called before another program goes on in our place.
 */
export function blockStdio(): void {
  for (const stream of [process.stdin, stdout, stderr]) {
    // Files have no handle. Node offers no other way.
    const { _handle: handle } = stream as { readonly _handle?: { setBlocking?(isBlocking: boolean): number } };
    handle?.setBlocking?.(true);
  }
}
