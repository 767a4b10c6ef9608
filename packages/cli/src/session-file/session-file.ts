import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { channelsOf } from "@tapedeck/ingest/for-cli/sessions";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { type SessionCheck, sessionCheck, sessionError } from "@tapedeck/shared/events/session-check";
import { ownValue } from "@tapedeck/shared/own-value";
import { type FileLine, FileLineError, fileLines } from "@tapedeck/tap/skaffold/event-log/file-lines";
import {
  eventLine,
  readEnd,
  readEventLine,
  readHeader,
  type SessionFileEnd,
  type SessionFileHeader,
  sessionFormat,
} from "./session-file-format.ts";

/** A session file in which all is as it was exported. */
export type SessionFile = {
  readonly header: SessionFileHeader;
  /** In the order of the file. */
  readonly sessions: readonly FiledSession[];
};

export type FiledSession = {
  readonly session: string;
  /** The id under which it was recorded first. */
  readonly origin: string;
  readonly events: number;
  readonly missing: Readonly<Record<string, number>>;
  /** The time at which its first event was recorded, in the log that it was exported from. */
  readonly recordedAt: Date;
  /** Number of its first event's line. */
  readonly line: number;
};

/** The log takes no event that makes a longer line. */
const maxLineBytes = 64 * 1024 * 1024;
/** Lines between two words about how far the reading is. */
const toldEvery = 500;

/** By how the first line begins. */
export async function isSessionFile(file: string): Promise<boolean> {
  try {
    for await (const { text } of fileLines(file, maxLineBytes)) return text.startsWith(`{"format":"${sessionFormat}"`);
  } catch (error) {
    if (!(error instanceof FileLineError)) throw error;
  }
  return false;
}

/**
 * Reads all of a session file and keeps nothing of it.
 * @throws FileLineError that names the first line that can't be as it was exported
 */
export async function verifySessionFile(file: string, onRead?: (events: number) => void): Promise<SessionFile> {
  const sha = createHash("sha256");
  let header: SessionFileHeader | undefined;
  let end: SessionFileEnd | undefined;
  let sessions: readonly Checked[] = [];
  let number = 0;
  for await (const line of fileLines(file, maxLineBytes)) {
    number = line.number;
    if (number % toldEvery === 0) onRead?.(number - 1);
    try {
      if (end !== undefined) throw new Error("nothing can come after the last line");
      if (header === undefined) header = checkedHeader(line.text);
      else {
        end = readEnd(line.text);
        if (end === undefined) sessions = withEvent(sessions, header, line);
      }
    } catch (error) {
      throw new FileLineError(file, number, (error as Error).message);
    }
    if (end === undefined) sha.update(line.bytes);
  }
  if (header === undefined || end === undefined) {
    throw new FileLineError(file, number, "the file ends here, without its last line: it was truncated");
  }
  const events = sessions.reduce((sum, { check }) => sum + check.events, 0);
  if (sha.digest("hex") !== end.sha256) throw await changedLine(file, number);
  if (events !== end.events)
    throw new FileLineError(file, number, `it declares ${end.events} events, but there are ${events}`);
  for (const { session, check, hole, line } of sessions) {
    if (isDeepStrictEqual(check.holes, ownValue(end.missing, session) ?? {})) continue;
    throw new FileLineError(file, hole ?? line, "events are missing before it, or are wrongly declared missing");
  }
  const absent = header.sessions[sessions.length];
  if (absent !== undefined) throw new FileLineError(file, number, `session ${absent.session} has no events`);
  return {
    header,
    sessions: sessions.map(({ session, check, recordedAt, line }) => {
      return { session, origin: check.origin ?? session, events: check.events, missing: check.holes, recordedAt, line };
    }),
  };
}

/** The events of one session of a file that was verified. */
export async function* sessionEvents(file: string, session: FiledSession): AsyncGenerator<Event, void> {
  await using reader = new SessionFileReader(file);
  yield* reader.events(session);
}

/** Reads sessions of a verified file. Those that are asked for in the order of the file cost one reading of it together. */
export class SessionFileReader implements AsyncDisposable {
  readonly #file: string;
  #lines: AsyncGenerator<FileLine, void> | undefined;
  /** The number of the line that was read last. */
  #number = 0;
  #openings = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** How often the file was opened. */
  get openings(): number {
    return this.#openings;
  }

  async *events({ line: first, events }: FiledSession): AsyncGenerator<Event, void> {
    if (this.#lines === undefined || this.#number >= first) await this.#reopen();
    for (let end = first + events; this.#number < end - 1; ) {
      const { value } = (await this.#lines?.next()) ?? {};
      if (value === undefined) return;
      this.#number = value.number;
      if (value.number >= first) yield readEventLine(value.text).event;
    }
  }

  async #reopen(): Promise<void> {
    await this.#lines?.return();
    this.#lines = fileLines(this.#file, maxLineBytes);
    this.#number = 0;
    this.#openings++;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lines?.return();
  }
}

type Checked = {
  readonly session: string;
  readonly recordedAt: Date;
  readonly line: number;
  readonly check: SessionCheck;
  /** The first line before which something is missing. */
  readonly hole?: number;
};

function withEvent(
  sessions: readonly Checked[],
  { sessions: listed, source, upstream }: SessionFileHeader,
  { text, number: line }: FileLine,
): readonly Checked[] {
  const { event, recordedAt } = readEventLine(text);
  const last = sessions.at(-1);
  let open = last;
  if (open?.session !== event.session) {
    const session = listed[sessions.length]?.session;
    if (session !== event.session) throw new Error(`it is not of session ${last?.session ?? session}`);
    const check = sessionCheck({ session, source, channels: channelsOf(upstream) });
    open = { session, recordedAt, line, check };
  }
  const reason = open.check.next(event);
  if (reason !== undefined) throw new Error(reason);
  if (open.hole === undefined && Object.keys(open.check.holes).length > 0) open = { ...open, hole: line };
  if (open === last) return sessions;
  return open.session === last?.session ? [...sessions.slice(0, -1), open] : [...sessions, open];
}

function checkedHeader(line: string): SessionFileHeader {
  const header = readHeader(line);
  const { source, upstream, sessions } = header;
  if (source.split("/").at(-1) !== upstream) throw new Error(`${source} is not a source of ${upstream}`);
  for (const [index, { session }] of sessions.entries()) {
    const reason = sessionError(session);
    if (reason !== undefined) throw new Error(reason);
    if (session <= (sessions[index - 1]?.session ?? "")) throw new Error("its sessions are not in order");
  }
  return header;
}

/** The readable parts are derived from the event beside them, so a changed line can be detected. */
async function changedLine(file: string, last: number): Promise<FileLineError> {
  for await (const { number, text } of fileLines(file, maxLineBytes)) {
    if (number === 1 || number === last || eventLine(readEventLine(text)) === text) continue;
    return new FileLineError(file, number, "it differs from the export: the file was changed");
  }
  return new FileLineError(file, last, "its checksum is not that of the lines before it: the file was changed");
}
