import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { compareTimestamps, timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";
import { parseAddress, probePort } from "../../port-probe.ts";
import { claim, hasOwner, inherit, readOwned } from "../../spill/ownership.ts";
import { isAlive } from "../../spill/process-identity.ts";
import { openSpill, type Spill } from "../../spill/spill.ts";
import { endOf } from "./event-log-offsets.ts";
import { EventLogTail } from "./event-log-tail.ts";
import { FiledProcesses } from "./filed-processes.ts";
import { type EventLogNote, noteSuffix, removeEventLog, writeNote } from "./own-event-log.ts";
import { ReceivedFrames } from "./received-frames.ts";

/**
 * Turns the event log files of killed taps into spills beside them, which are pushed like all orphaned spills. Files whose
 * Skaffold still runs wait for the next call, and so do files that the signal prevents. Never rejects.
 */
export async function takeLeftEventLogs(home: string, signal: AbortSignal): Promise<void> {
  const names = await readdir(home).catch(() => []);
  for (const name of names.filter((one) => one.endsWith(noteSuffix)).sort()) {
    if (signal.aborted) return;
    const path = join(home, name);
    try {
      using claimed = claimNote(path);
      const note = claimed && readOwned<EventLogNote>(path);
      if (note === undefined || (await mayWrite(note))) continue;
      await toSpill(home, note, signal);
      removeEventLog(path, note);
    } catch {
      // The disk is full, the file can't be read any more, or the signal aborted. The next call tries again.
    }
  }
}

/**
 * Call this before another command writes to the user's file: it notes where the file ended for taps that were killed and
 * whose command has ended. Never rejects.
 */
export async function endLeftEventLogs(home: string, file: string): Promise<void> {
  const names = await readdir(home).catch(() => []);
  for (const name of names.filter((one) => one.endsWith(noteSuffix))) {
    const path = join(home, name);
    try {
      using claimed = readOwned<EventLogNote>(path)?.file === file ? claimNote(path) : undefined;
      const note = claimed && readOwned<EventLogNote>(path);
      if (note === undefined || note.until !== undefined || (await mayWrite(note))) continue;
      writeNote(path, { ...note, until: endOf(file) });
    } catch {
      // The disk is full. The recorder skips messages that it has already.
    }
  }
}

/** The event log files of killed taps in which something has not been recorded yet. Never rejects. */
export async function leftEventLogs(home: string): Promise<readonly EventLogNote[]> {
  const names = await readdir(home).catch(() => []);
  return names
    .filter((one) => one.endsWith(noteSuffix))
    .flatMap((name) => {
      const path = join(home, name);
      const note = readOwned<EventLogNote>(path);
      return note === undefined || hasOwner(path, note) || !new EventLogTail(note.file, note).hasMore ? [] : [note];
    });
}

/** Undefined if its tap lives, or if another process has claimed it. */
function claimNote(path: string): Disposable | undefined {
  const note = readOwned<EventLogNote>(path);
  if (note === undefined || hasOwner(path, note)) return undefined;
  const claimPath = `${path}.claim`;
  inherit(claimPath);
  try {
    return claim(claimPath, {});
  } catch {
    return undefined;
  }
}

/** True while a Skaffold lives that may write its file, which it does at its end. */
async function mayWrite({ command, commandStarted, isOneProcess, address }: EventLogNote): Promise<boolean> {
  if (command !== undefined && isAlive({ pid: command, started: commandStarted })) return true;
  if (command !== undefined && isOneProcess) return false;
  return (await probePort(parseAddress(address))) === "open";
}

async function toSpill(home: string, note: EventLogNote, signal: AbortSignal): Promise<void> {
  const { file, isOneProcess, hello, to } = note;
  const tail = new EventLogTail(file, note);
  if (!tail.hasMore) return;
  const tap = ulid();
  await using spill = await openSpill({ dir: join(home, tap), hello: { ...hello, tap }, to });
  try {
    if (isOneProcess) await spillOneProcess(tail, spill, note, signal);
    else await spillProcesses(tail, spill, signal);
    signal.throwIfAborted();
    spill.persist();
  } catch (error) {
    // Drops the whole spill: the next call reads the file again.
    spill.commit(spill.state().nextIndex - 1n);
    throw error;
  }
}

async function spillOneProcess(
  tail: EventLogTail,
  spill: Spill,
  note: EventLogNote,
  signal: AbortSignal,
): Promise<void> {
  const since = note.since === undefined ? undefined : timestampOfMs(note.since);
  const own = await tail.ownParts({ received: new ReceivedFrames(), since }, signal);
  const { FiledConnection } = await import("./filed-connection.ts");
  const connection = new FiledConnection(spill.append);
  for await (const frame of tail.added(() => false, signal, own)) {
    if (frame.isOwn && (since === undefined || compareTimestamps(frame.timestamp, since) >= 0)) connection.frame(frame);
  }
  connection.end();
}

async function spillProcesses(tail: EventLogTail, spill: Spill, signal: AbortSignal): Promise<void> {
  const processes = new FiledProcesses(spill.append);
  for await (const frame of tail.added(() => false, signal)) {
    processes.add(frame);
    if (processes.isFull) await processes.emit(signal, { isMoreToCome: true });
  }
  await processes.emit(signal);
}
