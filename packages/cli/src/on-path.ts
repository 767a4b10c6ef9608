import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The file that runs when a program is named; undefined: there is none. */
export function onPath(program: string, path = process.env.PATH ?? ""): string | undefined {
  return path
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find(isExecutable);
}

/** A folder is none, although the system calls it executable where one may look into it. */
export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
