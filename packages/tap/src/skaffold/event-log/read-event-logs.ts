import { createReadStream, existsSync } from "node:fs";
import { linesOf } from "@tapedeck/shared/lines";
import { readEventLog, type SkippedLine } from "./event-log-file.ts";
import { type ImportedProcess, splitProcesses } from "./split-processes.ts";

export type ImportedLogs = {
  /** In the order of their starts. */
  readonly processes: readonly ImportedProcess[];
  readonly problems: readonly SkippedLine[];
};

/**
 * Reads event log files that belong together: the given ones, and for each the v2 file that Skaffold writes beside it
 * (F.v2). Throws the file system's error if one can't be read. Bad lines are reported as problems and skipped.
 */
export async function readEventLogs(paths: readonly string[]): Promise<ImportedLogs> {
  const beside = paths.map((path) => `${path}.v2`).filter((path) => existsSync(path));
  const files = [...new Set([...paths, ...beside])];
  const logs = [];
  for (const file of files) {
    logs.push(await readEventLog({ file, lines: linesOf(createReadStream(file, "utf8")) }));
  }
  return {
    processes: await splitProcesses(logs.flatMap(({ frames }) => frames)),
    problems: logs.flatMap(({ problems: errors }) => errors),
  };
}
