import { createWriteStream } from "node:fs";
import { readlink, rename, rm, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { plural } from "@tapedeck/client/lanes/format";
import { exportFrom, type ToExport } from "../../api/exported-sessions.ts";
import { CommandError } from "../../command-error.ts";
import { print, printError, rawOutput } from "../../display/output.ts";
import { shortSource } from "../../display/source-name.ts";
import { grpcTarget } from "../../grpc-target.ts";
import { Progress, type ProgressTo } from "../../progress.ts";
import { stopSignals } from "../stop-signals.ts";
import { type Filed, sessionFileChunks } from "./session-file-chunks.ts";

export type ExportOptions = {
  readonly url?: string;
  readonly source?: string;
  readonly output?: string;
  readonly since?: string;
  readonly until?: string;
};

export async function exportSessions(
  sessions: readonly string[],
  options: ExportOptions,
  progressTo: ProgressTo = {},
): Promise<void> {
  using from = exportFrom(grpcTarget(options.url));
  const chosen = await from.find(sessions, options.source, options);
  using progress = new Progress({ what: `exporting ${shortSource(chosen.source)}`, unit: "events", ...progressTo });
  const filed: Filed = { events: 0 };
  const chunks = (made: Filed) =>
    afterEach(sessionFileChunks(chosen, from.events, made), () => progress.reached(made.events));
  const { output } = options;
  if (output === undefined) {
    await pipeline(Readable.from(chunks(filed)), rawOutput, { end: false });
    return;
  }
  const written = await writeFile(output, Readable.from(chunks(filed)));
  progress[Symbol.dispose]();
  printWritten(written, resultLine(chosen, filed, output));
}

async function* afterEach<T>(chunks: AsyncIterable<T>, done: () => void): AsyncGenerator<T, void> {
  for await (const chunk of chunks) {
    done();
    yield chunk;
  }
}

/** What was written: a file, or into a pipe or a device, whose reader may have left before the end. */
export type Written = "file" | "stream" | "reader left";

/** `line` says what was written. A pipe may be this very output, which is for the data. */
export function printWritten(written: Written, line: string): void {
  if (written === "file") print(line);
  else if (written === "stream") printError(line);
}

/**
 * There is no such file before all of it is there. The file that a link leads to is replaced, with its permissions; a pipe or a
 * device is written as it is.
 */
export async function writeFile(file: string, from: Readable): Promise<Written> {
  const known = await stat(file).catch(() => undefined);
  if (known?.isDirectory()) throw new CommandError(`${file} is a folder: give the name of a file in it.`);
  const isReplaced = known?.isFile() ?? true;
  const place = isReplaced ? await behindLinks(file) : file;
  // Another export may write the same file.
  const part = isReplaced ? `${place}.${process.pid}.part` : place;
  using stop = stopSignals();
  try {
    const to = createWriteStream(part, known === undefined ? {} : { mode: known.mode & 0o777 });
    if (file.endsWith(".gz")) await pipeline(from, createGzip(), to, { signal: stop.signal });
    else await pipeline(from, to, { signal: stop.signal });
    if (isReplaced) await rename(part, place);
    return isReplaced ? "file" : "stream";
  } catch (error) {
    if (isReplaced) await rm(part, { force: true });
    if (stop.signal.aborted)
      throw new CommandError(isReplaced ? "stopped: nothing was written." : "stopped: not everything was written.");
    const { code } = error as NodeJS.ErrnoException;
    if (!isReplaced && code === "EPIPE") return "reader left";
    throw code === "ENOENT" ? new CommandError(`there is no folder ${dirname(part)} to write to.`) : error;
  }
}

/** The system gives up after as many. */
const maxLinks = 40;

/** Where the links of a name lead, also if nothing is there yet. */
async function behindLinks(file: string): Promise<string> {
  let place = file;
  for (let links = 0; links <= maxLinks; links++) {
    const target = await readlink(place).catch(() => undefined);
    if (target === undefined) return place;
    place = resolve(dirname(place), target);
  }
  throw new CommandError(`${file} is a link that leads to itself.`);
}

function resultLine({ source, sessions }: ToExport, { events }: Filed, file: string): string {
  const running = sessions.filter(({ ended }) => !ended).length;
  const what = sessions.length === 1 ? `session ${sessions[0]?.session}` : `${sessions.length} sessions`;
  const upToNow = running === 0 ? "" : sessions.length === 1 ? "; still running" : `; ${running} still running`;
  return `${file}: ${what} of ${shortSource(source)}, ${plural(events, "event")}${upToNow}`;
}
