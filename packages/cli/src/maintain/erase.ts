import { CommandError } from "../command-error.ts";
import type { EraseOptions } from "../commands/erase.ts";

export async function erase(_options: EraseOptions): Promise<void> {
  throw new CommandError("erase is not there yet");
}
