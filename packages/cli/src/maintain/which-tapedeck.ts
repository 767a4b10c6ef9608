import { printError } from "../display/output.ts";
import { chosenText, isElsewhere } from "../targets/chosen-tapedeck.ts";

export type WhichTapedeck = {
  readonly url?: string;
  /** The data folder of this machine's Tapedeck. */
  readonly data: string;
  /** This machine's is meant, whatever a variable or the login select. */
  readonly here?: boolean;
};

/** Prints which Tapedeck a command works on, before anything is asked or done. True where it is not this machine's. */
export function announceTapedeck(command: string, { url, data, here = false }: WhichTapedeck): boolean {
  const elsewhere = !here && isElsewhere(url, process.env);
  printLine(`${command} at ${elsewhere ? chosenText(url, process.env) : `this machine's Tapedeck server (${data})`}`);
  return elsewhere;
}

/** Warns that a command works on this machine only: a user who has chosen another Tapedeck may not expect that. */
export function announceLocalOnly(command: string, data: string): void {
  if (!isElsewhere(undefined, process.env)) return;
  const chosen = chosenText(undefined, process.env);
  printLine(`${command} works on this machine only (${data}), not on ${chosen}, which other commands use`);
}

/** Writes to stderr: stdout is for programs. */
function printLine(line: string): void {
  printError(`tapedeck: ${line}`);
}
