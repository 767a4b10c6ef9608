import { readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/**
 * Folder of frames that are not delivered yet, with one folder per tap. It belongs to the user and not to a project:
 * `tapedeck run` works in the project's folder, `tapedeck up` in its own, and the next `up` has to find what waits.
 */
export function spillHome(
  env: Readonly<Record<string, string | undefined>>,
  chosen: string | undefined = env.TAPEDECK_SPILL,
): string {
  if (chosen !== undefined && chosen !== "") return chosen;
  const state = env.XDG_STATE_HOME;
  return join(state === undefined || state === "" ? join(homedir(), ".local", "state") : state, "tapedeck", "spill");
}

/** Whether anything is there at all, which is known without loading what reads it. */
export function isEmptyHome(home: string): boolean {
  try {
    return readdirSync(home).length === 0;
  } catch {
    return true;
  }
}
