import { type FSWatcher, watch } from "node:fs";
import { type FileHandle, open, rename, stat } from "node:fs/promises";
import { basename } from "node:path";
import { delay } from "@tapedeck/shared/sync/delay";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { coloured } from "../../display/colour.ts";
import { counted } from "../../display/counted.ts";

type Line = {
  readonly level?: number;
  readonly time?: number;
  readonly msg?: string;
  readonly err?: { message?: string };
};

const warning = 40;
const error = 50;
/** What is written within this time is shown together. */
const gatherMs = 300;
/** A file is read as often as this, whatever the system says of it: it may be on the disk of another machine. */
const unheardMs = 5_000;
const largestBytes = 10 * 1024 * 1024;
/** A service that warns without end must not fill the terminal; all is in its file. */
const maxLines = 20;

/** A log file, and where in it this start begins. */
export type LogFile = { readonly path: string; readonly from: number };

/** Makes it if need be; a large one is put aside first. */
export async function openLogFile(path: string): Promise<LogFile> {
  const { size } = await stat(path).catch(() => ({ size: 0 }));
  if (size > largestBytes) await rename(path, `${path}.old`);
  await using file = await open(path, "a", 0o600);
  return { path, from: (await file.stat()).size };
}

/**
 * Shows what services write to their log files: warnings and errors, or with `verbose` everything. Resolves when the signal
 * is aborted, and shows nothing after it: services that lose their servers while all stops warn of that.
 */
export async function showLogs(
  files: readonly LogFile[],
  verbose: boolean,
  signal: AbortSignal,
  printLine: (line: string) => void,
): Promise<void> {
  await Promise.all(files.map((file) => showLog(file, verbose, signal, printLine).catch(() => {})));
}

async function showLog(log: LogFile, verbose: boolean, signal: AbortSignal, printLine: (line: string) => void) {
  const { path } = log;
  await using file = await open(path, "r");
  using changes = watchFile(path);
  let { from } = log;
  let rest = "";
  while (!signal.aborted) {
    const changed = changes.next();
    const text = await readFrom(file, from);
    if (signal.aborted) return;
    from += text.length;
    const lines = (rest + text.toString()).split("\n");
    rest = lines.pop() ?? "";
    const visible = lines.flatMap((line) => pretty(basename(path, ".log"), line, verbose) ?? []);
    for (const line of visible.slice(0, maxLines)) printLine(line);
    if (visible.length > maxLines) printLine(`… and ${counted(visible.length - maxLines, "more line")} in ${path}`);
    const over = new AbortController();
    await Promise.race([changed, delay(changes.waitMs(), AbortSignal.any([signal, over.signal]))]);
    over.abort();
    await delay(gatherMs, signal);
  }
}

/** `next` resolves when the file may have changed, after `waitMs` at the latest. */
function watchFile(path: string): Disposable & Pick<Notifier, "next"> & { readonly waitMs: () => number } {
  const changed = new Notifier();
  let watcher: FSWatcher | undefined;
  const stop = () => {
    watcher?.close();
    watcher = undefined;
  };
  try {
    watcher = watch(path, { persistent: false }, () => changed.ring()).on("error", stop);
  } catch {
    // The system watches as many files as it can.
  }
  return {
    next: () => changed.next(),
    waitMs: () => (watcher === undefined ? gatherMs : unheardMs),
    [Symbol.dispose]: stop,
  };
}

async function readFrom(file: FileHandle, from: number): Promise<Buffer> {
  const { size } = await file.stat();
  if (size <= from) return Buffer.alloc(0);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
  return buffer.subarray(0, bytesRead);
}

function pretty(service: string, text: string, verbose: boolean): string | undefined {
  const line = parse(text);
  if (line === undefined) return text.trim() === "" ? undefined : `${service}: ${text}`;
  const level = line.level ?? 0;
  if (!verbose && level < warning) return undefined;
  const cause = line.err?.message === undefined || line.err.message === line.msg ? "" : ` (${line.err.message})`;
  const colour = level >= error ? "red" : level >= warning ? "yellow" : "dim";
  const message = `${service}: ${line.msg ?? ""}${cause}`;
  return coloured(colour, `${new Date(line.time ?? Date.now()).toTimeString().slice(0, 8)} ${message}`);
}

function parse(text: string): Line | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
