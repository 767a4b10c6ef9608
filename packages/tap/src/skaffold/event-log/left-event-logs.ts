import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { compareMoments, momentOfMs } from "@tapedeck/shared/time/moment";
import { ulid } from "ulid";
import { claim, hasOwner, inherit, readOwned } from "../../spill/ownership.ts";
import { isAlive } from "../../spill/process-identity.ts";
import { openSpill, type Spill } from "../../spill/spill.ts";
import { parseAddress, probePort } from "../port-probe.ts";
import { endOf } from "./event-log-place.ts";
import { EventLogTail } from "./event-log-tail.ts";
import { FiledConnection } from "./filed-connection.ts";
import { FiledProcesses } from "./filed-processes.ts";
import { HeardFrames } from "./heard-frames.ts";
import { type EventLogNote, noteSuffix, removeEventLog, writeNote } from "./own-event-log.ts";

/**
 * Turns the event log files of taps that were killed into spills beside them, which are pushed as all that taps have left.
 * Those whose Skaffold still runs wait for the next call, and so does what the signal comes before. Never rejects.
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
      // The disk is full, or the file is no more to be read, or there was no time: the next one may have more luck.
    }
  }
}

/**
 * To be called before another command writes to the user's file: notes where those that were left and are over have ended
 * in it. Never rejects.
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
      // The disk is full: the recorder leaves out what it has by another way.
    }
  }
}

/** Undefined where its tap lives, or another process has it. */
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

/** A Skaffold writes its file when it ends. */
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
    if (isOneProcess) await one(tail, spill, note, signal);
    else await several(tail, spill, signal);
    signal.throwIfAborted();
    spill.persist();
  } catch (error) {
    // Nothing of it stays: the next one takes all.
    spill.commit(spill.state().nextIndex - 1n);
    throw error;
  }
}

async function one(tail: EventLogTail, spill: Spill, note: EventLogNote, signal: AbortSignal): Promise<void> {
  const since = note.since === undefined ? undefined : momentOfMs(note.since);
  const own = await tail.ownParts({ heard: new HeardFrames(), since }, signal);
  const connection = new FiledConnection(spill.append);
  for await (const frame of tail.added(() => false, signal, own)) {
    if (frame.isOwn && (since === undefined || compareMoments(frame.moment, since) >= 0)) connection.frame(frame);
  }
  connection.end();
}

async function several(tail: EventLogTail, spill: Spill, signal: AbortSignal): Promise<void> {
  const processes = new FiledProcesses(spill.append);
  for await (const frame of tail.added(() => false, signal)) {
    processes.add(frame);
    if (processes.isFull) await processes.tell(signal, { isMoreToCome: true });
  }
  await processes.tell(signal);
}
