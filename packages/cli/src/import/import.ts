import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type ImportedLogs, readEventLogs } from "@tapedeck/ingest/import/read-event-logs";
import { isSessionFile } from "@tapedeck/ingest/import/session-file";
import type { ImportedProcess } from "@tapedeck/ingest/import/split-processes";
import { grpcLink } from "@tapedeck/ingest/tap/link";
import { pushItems } from "@tapedeck/ingest/tap/push";
import { openSpill, type Spill } from "@tapedeck/ingest/tap/spill";
import { RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { namePart } from "@tapedeck/shared/source";
import { ulid } from "ulid";
import { apiAt } from "../ask/api.ts";
import { CommandError } from "../command-error.ts";
import type { ImportOptions } from "../commands/import.ts";
import { grpcTarget } from "../gateway-address.ts";
import { loginName } from "../run/labels.ts";
import { projectName } from "../run/project-name.ts";
import { refusalIn } from "../run/refusal.ts";
import { spillHome } from "../run/spill-home.ts";
import { importSessionFiles } from "./import-sessions.ts";
import { knownSessions } from "./known-sessions.ts";

/** An import that makes no progress for so long is given up. */
const patienceMs = 60_000;

export async function importFiles(files: readonly string[], options: ImportOptions): Promise<void> {
  for (const file of files) await assertFile(file);
  const areSessions = await Promise.all(files.map(isSessionFile));
  if (areSessions.every(Boolean)) return importSessionFiles(files, options);
  if (areSessions.some(Boolean))
    throw new CommandError("session files and event logs are not imported at once: name them apart.");
  await importEventLogs(files, options);
}

async function assertFile(file: string): Promise<void> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) throw new CommandError(`${file}: there is no such file.`);
  if (found.isDirectory()) throw new CommandError(`${file} is a folder: name the files in it.`);
}

async function importEventLogs(files: readonly string[], options: ImportOptions): Promise<void> {
  const logs = await read(files);
  const developer = options.developer ?? loginName();
  const project = options.project ?? projectName(process.cwd(), undefined);
  const source = [developer, project].map(namePart).join("/");
  const known = await knownSessions(apiAt(options.url), source);
  const told: { readonly started: string; readonly messages: number; readonly session?: string }[] = [];
  for (const imported of logs.processes) {
    const match = known.find(imported);
    const started = timeText(imported);
    const messages = imported.frames.length;
    if (match !== undefined) told.push({ started, messages, session: match });
    else {
      await push(imported, { developer, project, file: files.join(", ") }, options);
      told.push({ started, messages });
    }
  }
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ source, processes: told, problems: logs.problems })}\n`);
    return;
  }
  for (const { started, messages, session } of told) {
    const what = `${messages} ${messages === 1 ? "message" : "messages"} of the process that began ${started}`;
    console.log(
      `${source}: ${session === undefined ? `recorded ${what}` : `${what}: recorded already (session ${session})`}`,
    );
  }
  for (const { file, line, problem } of logs.problems) console.error(`${file}:${line}: left out: ${problem}`);
}

async function read(files: readonly string[]): Promise<ImportedLogs> {
  let logs: ImportedLogs;
  try {
    logs = await readEventLogs(files);
  } catch (error) {
    throw new CommandError(`can't be read: ${(error as Error).message}`);
  }
  if (logs.processes.length > 0) return logs;
  const [first] = logs.problems;
  const why = first === undefined ? "" : ` (line ${first.line}: ${first.problem})`;
  throw new CommandError(`${files.join(", ")}: there is nothing of Skaffold's event log in it${why}.`);
}

type About = { readonly developer: string; readonly project: string; readonly file: string };

/** As a tap would have pushed it, had it been there: one connection, the frames at their own times, the end. */
async function push(imported: ImportedProcess, about: About, options: ImportOptions): Promise<void> {
  const { developer, project, file } = about;
  const tap = ulid();
  const hello = {
    developer,
    project,
    upstream: "skaffold",
    tap,
    labels: { imported: "true", ...options.label },
    redact: options.redact,
  };
  await using spill = await openSpill({ dir: join(spillHome(process.env), tap), hello });
  append(spill, imported, file);
  const target = grpcTarget(options.to);
  const client = new RecorderClient(target.address, target.credentials);
  const stop = new AbortController();
  let refusal: string | undefined;
  const pushing = pushItems({
    link: grpcLink(client, target.metadata),
    spill,
    control: async ({ call }) => ({ call, code: 14, message: "an import", response: Buffer.alloc(0) }),
    signal: stop.signal,
    log: {
      info: () => {},
      warn: (fields) => {
        refusal = refusalIn(fields) ?? refusal;
      },
    },
    sourceTaken: () => undefined,
  });
  const done = await pushing.finish(patienceMs);
  stop.abort();
  client.close();
  if (!done) throw new CommandError(`not imported: ${refusal ?? `no Tapedeck takes it at ${target.name}`}`);
}

function append(spill: Spill, { frames }: ImportedProcess, file: string): void {
  const connection = ulid();
  const first = frames[0]?.moment;
  const last = frames.at(-1)?.moment;
  const channels = [...new Set(frames.map(({ channel }) => channel))];
  spill.append({ connection, at: first, what: { $case: "dialled", value: { address: `file:${file}`, channels } } });
  for (const { channel, bytes, moment } of frames) {
    const value = { channel, bytes: Buffer.from(bytes), more: false };
    spill.append({ connection, at: moment, what: { $case: "frame", value } });
  }
  const closed = { reason: "the end of the file", process_ended: true };
  spill.append({ connection, at: last, what: { $case: "closed", value: closed } });
}

function timeText({ frames }: ImportedProcess): string {
  const seconds = Number(frames[0]?.moment.seconds ?? 0n);
  return new Date(seconds * 1_000).toISOString().replace("T", " ").slice(0, 19);
}
