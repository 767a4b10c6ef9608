import type { LogReader, ReadFrom } from "@tapedeck/shared/log/log";
import { logStart } from "@tapedeck/shared/log/offset";
import { sourceOfSubject, workspaceFilter } from "@tapedeck/shared/log/subjects";
import { sourceParts } from "@tapedeck/shared/source";
import type { WorkspaceLogs } from "../projecting/workspace-logs.ts";

/** The workspace of scenarios that name no other. */
export const acme = "acme";

/** The logs of the workspaces that are in one log. */
export function logsIn(log: LogReader): Pick<WorkspaceLogs, "names" | "of" | "isRemoved"> {
  return {
    names: () => workspacesIn(log),
    of: async (workspace) => limitedTo(log, workspace),
    isRemoved: () => false,
  };
}

/** Reads what is of the workspace where all is asked for. */
export function limitedTo(reader: LogReader, workspace: string): LogReader {
  const subjects = [workspaceFilter(workspace)];
  const limited = (from: ReadFrom) => (from.subjects.length === 0 ? { ...from, subjects } : from);
  return {
    ...reader,
    history: (from, until, signal) => reader.history(limited(from), until, signal),
    follow: (from, options) => reader.follow(limited(from), options),
  };
}

/** The workspaces that have events in a log, in alphabetical order. */
export async function workspacesIn(log: LogReader): Promise<readonly string[]> {
  const { lastOffset } = await log.bounds();
  const { signal } = new AbortController();
  const found = new Set<string>();
  for await (const batch of log.historyBatches({ afterOffset: logStart, subjects: [] }, lastOffset, signal)) {
    for (const { subject } of batch) {
      const source = sourceOfSubject(subject);
      if (source !== undefined) found.add(sourceParts(source).workspace);
    }
  }
  return [...found].toSorted();
}
