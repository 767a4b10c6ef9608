import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installProgram } from "./program.ts";

const fixtures = fileURLToPath(new URL("../../../fakes/recordings/skaffold/", import.meta.url));

/** Puts a program `skaffold` into a folder; gives the PATH with which it is found. */
export function installSkaffold(folder: string): string {
  return installProgram(folder, "skaffold");
}

/** Folder of a recording in packages/fakes/recordings/skaffold. */
export function recordingFolder(name: string): string {
  return join(fixtures, name);
}
