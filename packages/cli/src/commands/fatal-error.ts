import { inspect } from "node:util";
import { printError } from "../display/output.ts";

let handle = (error: unknown): void => {
  printError(inspect(error));
  process.exit(1);
};

/** Takes an error that nothing has caught: it ends the process, unless a command has something else to do first. */
export function fatalError(error: unknown): void {
  handle(error);
}

export function onFatalError(handler: (error: unknown) => void): void {
  handle = handler;
}
