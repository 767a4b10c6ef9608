import { statSync } from "node:fs";

/** The files of Skaffold's event log: F has v1, F.v2 has v2. */
const suffixes = { v1: "", v2: ".v2" } as const;

/** A channel that has an event log file. */
export type LoggedChannel = keyof typeof suffixes;

/** The channels that have event log files. */
export const loggedChannels = ["v1", "v2"] as const;

/** An offset in each of the two files, in bytes. */
export type EventLogOffsets = Readonly<Record<LoggedChannel, number>>;

/** The file of a channel: v2 has a file of its own beside the one that is named. */
export function fileOf(path: string, channel: LoggedChannel): string {
  return `${path}${suffixes[channel]}`;
}

/** Both files. */
export function filesOf(path: string): readonly string[] {
  return loggedChannels.map((channel) => fileOf(path, channel));
}

/** Where both files end now. A missing file ends at 0. */
export function endOf(path: string): EventLogOffsets {
  return { v1: sizeOf(fileOf(path, "v1")), v2: sizeOf(fileOf(path, "v2")) };
}

/** 0 for anything but a regular file: reading a pipe could make its writer wait. */
function sizeOf(file: string): number {
  try {
    const stat = statSync(file);
    return stat.isFile() ? stat.size : 0;
  } catch {
    return 0;
  }
}
