import { stat } from "node:fs/promises";
import { loginName } from "@tapedeck/shared/service/login-name";
import { namePart } from "@tapedeck/shared/source";
import { type ImportedLogs, readEventLogs } from "@tapedeck/tap/skaffold/event-log/read-event-logs";
import type { ImportedProcess } from "@tapedeck/tap/skaffold/event-log/split-processes";
import { apiAt } from "../../api/api.ts";
import { CommandError } from "../../command-error.ts";
import { print, printError, printJson } from "../../display/output.ts";
import { grpcTarget } from "../../grpc-target.ts";
import { Progress, type ProgressTo } from "../../progress.ts";
import { projectName } from "../../recording/project-name.ts";
import { isSessionFile } from "../../session-file/session-file.ts";
import { importSessionFiles } from "./import-sessions.ts";
import { knownSessions } from "./known-sessions.ts";
import type { ImportOptions } from "./options.ts";
import { pushProcesses, type ToImport } from "./push-processes.ts";

export async function importFiles(
  files: readonly string[],
  options: ImportOptions,
  progressTo: ProgressTo = {},
): Promise<void> {
  for (const file of files) await assertFile(file);
  const areSessions = await Promise.all(files.map(isSessionFile));
  if (areSessions.every(Boolean)) return importSessionFiles(files, options, progressTo);
  if (areSessions.some(Boolean))
    throw new CommandError("session files and event logs can't be imported together: import them separately.");
  await importEventLogs(files, options, progressTo);
}

async function assertFile(file: string): Promise<void> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) throw new CommandError(`${file}: no such file.`);
  if (found.isDirectory()) throw new CommandError(`${file} is a folder: name the files in it.`);
}

async function importEventLogs(files: readonly string[], options: ImportOptions, progressTo: ProgressTo) {
  const logs = await read(files);
  const developer = options.developer ?? loginName();
  const project = options.project ?? projectName(process.cwd(), undefined);
  const name = [developer, project].map(namePart).join("/");
  const known = await knownSessions(apiAt(options.url), name);
  const found = logs.processes.map((imported) => ({ imported, session: known.find(imported) }));
  const fresh = found.flatMap(({ imported, session }) => (session === undefined ? [imported] : []));
  const about = {
    developer,
    project,
    file: files.join(", "),
    target: grpcTarget(options.url),
    labels: options.label ?? {},
    redact: options.redact,
  };
  const recordedAs = await recordAll(fresh, about, progressTo);
  const source = recordedAs === undefined ? name : recordedAs.split("/").slice(1, 3).join("/");
  const results = found.map(({ imported, session }) => ({
    started: timeText(imported),
    messages: imported.frames.length,
    ...(session !== undefined && { session }),
  }));
  if (options.json) {
    printJson({ source, processes: results, problems: logs.problems });
    return;
  }
  for (const { started, messages, session } of results) {
    const what = `${messages} ${messages === 1 ? "message" : "messages"} of the process that began ${started}`;
    print(
      `${source}: ${session === undefined ? `recorded ${what}` : `${what}: already recorded (session ${session})`}`,
    );
  }
  for (const { file, line, problem } of logs.problems) printError(`${file}:${line}: skipped: ${problem}`);
}

/** The source that has them now; undefined where there was nothing to record. */
async function recordAll(
  fresh: readonly ImportedProcess[],
  about: ToImport,
  progressTo: ProgressTo,
): Promise<string | undefined> {
  if (fresh.length === 0) return undefined;
  const total = fresh.reduce((sum, { frames }) => sum + frames.length, 0);
  using progress = new Progress({ what: `importing ${about.file}`, unit: "messages", total, ...progressTo });
  return await pushProcesses(fresh, {
    ...about,
    onRecorded: (messages) => progress.reached(Math.min(messages, total)),
  });
}

async function read(files: readonly string[]): Promise<ImportedLogs> {
  let logs: ImportedLogs;
  try {
    logs = await readEventLogs(files);
  } catch (error) {
    throw new CommandError(`the event log can't be read: ${(error as Error).message}`);
  }
  if (logs.processes.length > 0) return logs;
  const [first] = logs.problems;
  const why = first === undefined ? "" : ` (line ${first.line}: ${first.problem})`;
  throw new CommandError(`${files.join(", ")}: not an event log of Skaffold${why}.`);
}

function timeText({ frames }: ImportedProcess): string {
  const seconds = Number(frames[0]?.timestamp.seconds ?? 0n);
  return new Date(seconds * 1_000).toISOString().replace("T", " ").slice(0, 19);
}
