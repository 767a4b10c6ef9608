import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { connect, TapedeckError } from "@tapedeck/client";
import { dataMark, dataVersion, type SessionData } from "@tapedeck/web/file/data";
import { type ApiClient, apiAt } from "../../../api/api.ts";
import { exportFrom } from "../../../api/exported-sessions.ts";
import { CommandError } from "../../../command-error.ts";
import { counted } from "../../../display/counted.ts";
import { bytesText } from "../../../display/durations.ts";
import { rawOutput } from "../../../display/output.ts";
import { shortSource } from "../../../display/source-name.ts";
import { grpcTarget } from "../../../grpc-target.ts";
import { Progress, type ProgressTo } from "../../../progress.ts";
import { type ExportOptions, printWritten, writeFile } from "../run.ts";
import { defaultBounds, readSessionData, type SessionBounds } from "./session-data.ts";

/** Writes one session as a page with all its data, for a browser without a Tapedeck server. */
export async function exportPage(
  sessions: readonly string[],
  options: ExportOptions,
  progressTo: ProgressTo = {},
  bounds: SessionBounds = defaultBounds,
): Promise<void> {
  const { url, output } = options;
  if (output?.endsWith(".gz"))
    throw new CommandError("browsers don't open .gz files: choose a name that ends in .html.");
  using from = exportFrom(grpcTarget(url));
  const { source, sessions: found, position } = await from.find(sessions, options.source, options);
  const [only, ...others] = found;
  if (only === undefined) throw new CommandError("there is no such session: see `tapedeck sessions`.");
  if (others.length > 0) throw new CommandError(`a page shows one session, and ${found.length} match: choose one.`);
  const api = apiAt(url);
  const template = await templateOf(api);
  const { base, token } = api;
  using client = connect({ url: base, ...(token !== undefined && { token }) });
  using progress = new Progress({ what: `exporting ${shortSource(source)}`, unit: "events", ...progressTo });
  const data = await readSessionData(client, { session: only.session, position }, bounds, (events) =>
    progress.reached(events),
  ).catch((error: unknown) => {
    throw error instanceof TapedeckError ? new CommandError(error.message) : error;
  });
  const page = await pageOf(template, data);
  progress[Symbol.dispose]();
  if (output === undefined) return pipeline(Readable.from([page]), rawOutput, { end: false });
  printWritten(await writeFile(output, Readable.from([page])), resultLine(data, page, output));
}

/** The gateway has it, beside the page: a machine with the command alone has built none. */
async function templateOf(api: ApiClient): Promise<string> {
  const template = await api.text("/session-file.html");
  if (template === undefined || template.split(dataMark).length !== 2)
    throw new CommandError(`${api.base} can't write pages: its own page was not built (\`npm start\` builds it).`);
  if (!template.includes(`name="tapedeck-session-data" content="${dataVersion}"`))
    throw new CommandError(`the page of ${api.base} and this tapedeck have different versions.`);
  return template;
}

/** Base64 needs no escaping: whatever was recorded, no tag stands in it. */
async function pageOf(template: string, data: SessionData): Promise<Buffer> {
  const [before = "", after = ""] = template.split(dataMark);
  const packed = await promisify(gzip)(JSON.stringify(data));
  return Buffer.from(`${before}${packed.toString("base64")}${after}`);
}

function resultLine(
  { session, events, olderEvents, olderOperations }: SessionData,
  page: Buffer,
  file: string,
): string {
  const isRunning = session.endedAt === null && session.endReason === null;
  const what = `session ${session.session} of ${shortSource(session.source)}`;
  const which = olderEvents === 0 ? counted(events.length, "event") : `the newest ${counted(events.length, "event")}`;
  const older = olderEvents === 0 ? "" : ` (${olderEvents} older ones omitted)`;
  const lacking = olderOperations === 0 ? older : `${older}, without ${counted(olderOperations, "older operation")}`;
  return `${file}: ${what}, ${which}${lacking}, ${bytesText(page.length)}${isRunning ? "; still running" : ""}`;
}
