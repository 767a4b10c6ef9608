import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** The file that runs when a program is named; undefined: there is none. */
export function onPath(program: string): string | undefined {
  return (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
