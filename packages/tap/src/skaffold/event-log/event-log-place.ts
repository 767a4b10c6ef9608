import { statSync } from "node:fs";

/** Files of Skaffold's event log: F holds v1, F.v2 holds v2. */
const suffixes = { v1: "", v2: ".v2" } as const;
export type LoggedChannel = keyof typeof suffixes;
export const loggedChannels = ["v1", "v2"] as const;

/** In bytes, for each of the two files. */
export type EventLogPlace = Readonly<Record<LoggedChannel, number>>;

export function fileOf(path: string, channel: LoggedChannel): string {
  return `${path}${suffixes[channel]}`;
}

/** Both files. */
export function filesOf(path: string): readonly string[] {
  return loggedChannels.map((channel) => fileOf(path, channel));
}

/** Where both files end now; one that is not there ends where it begins. */
export function endOf(path: string): EventLogPlace {
  return { v1: sizeOf(fileOf(path, "v1")), v2: sizeOf(fileOf(path, "v2")) };
}

/** 0 for what is no file: to read a pipe could make its writer wait. */
function sizeOf(file: string): number {
  try {
    const stat = statSync(file);
    return stat.isFile() ? stat.size : 0;
  } catch {
    return 0;
  }
}
