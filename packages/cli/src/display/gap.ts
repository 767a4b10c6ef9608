import type { Gap } from "@tapedeck/client";
import { printError } from "./output.ts";

/** Reports that a reader continues after missing events. */
export function printGap({ after, until }: Gap): void {
  printError(`tapedeck: events between positions ${after} and ${until} are missing: the log lost or can't read them`);
}
