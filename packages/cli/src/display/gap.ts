import type { Gap } from "@tapedeck/client";
import { printError } from "./output.ts";

/** Says that a reader goes on behind events that are missing. */
export function printGap({ after, until }: Gap): void {
  printError(`tapedeck: events between positions ${after} and ${until} are missing: the log lost or can't read them`);
}
