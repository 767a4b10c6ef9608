import type { Gap } from "@tapedeck/client";
import { printError } from "./output.ts";

/** Says that the log has lost events, which a reader goes on behind. */
export function printGap({ after, until }: Gap): void {
  printError(`tapedeck: the log has lost events between positions ${after} and ${until}`);
}
