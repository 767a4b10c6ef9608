import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { noteOwner } from "../../spill/ownership.ts";
import { identityOf, type ProcessIdentity, thisProcess } from "../../spill/process-identity.ts";
import type { TapIdentity } from "../../spill/spill-folder.ts";
import { type EventLogOffsets, endOf, filesOf } from "./event-log-offsets.ts";

/** Describes an event log file to any process that finds it: beside spills, as `<tap>.events.json`. The process is the tap's. */
export type EventLogNote = ProcessIdentity & {
  readonly file: string;
  readonly from: EventLogOffsets;
  /** Messages after this offset are another command's; undefined if no tap saw the end of this command. */
  readonly until?: EventLogOffsets | undefined;
  /** A time before the command began, in ms since 1970; undefined if no earlier process can have written to the file. */
  readonly since?: number | undefined;
  /** The tap made the file, so it is removed when it has been read. */
  readonly isOurs: boolean;
  readonly isOneProcess: boolean;
  /** Processes that may still write to the file while they live: the command's, and the one that listens at that address. */
  readonly command: number | undefined;
  readonly commandStarted?: string | undefined;
  readonly address: string;
  readonly hello: TapIdentity;
  readonly to: string;
};

/** The suffix of the note that a command leaves about its event log file. */
export const noteSuffix = ".events.json";

export type OwnEventLogOptions = Pick<EventLogNote, "isOneProcess" | "address" | "hello" | "to"> & {
  /** The folder of the spills. */
  readonly home: string;
  /** The user's own file; undefined if the tap makes one. */
  readonly file: string | undefined;
};

/**
 * The event log file of a command's Skaffold, and a note by which another process can read it if this one is killed. Made
 * before the command starts.
 */
export class OwnEventLog {
  /** The path of the file. */
  readonly path: string;
  /** Where the file ended before the command. */
  readonly from: EventLogOffsets;
  /**
   * A time before the command began, in ms since 1970, by more than a clock adjustment. Undefined for the tap's own file:
   * only processes that the command started write to it.
   */
  readonly since: number | undefined;
  readonly #notePath: string;
  #note: Omit<EventLogNote, keyof ProcessIdentity>;

  /** @throws the system's error if the files can't be made */
  constructor({ home, hello, file, to, isOneProcess, address }: OwnEventLogOptions) {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    this.#notePath = join(home, `${hello.tap}${noteSuffix}`);
    this.path = file ?? join(home, `${hello.tap}.events.log`);
    this.from = endOf(this.path);
    this.since = file === undefined ? undefined : Date.now() - 1_000;
    const { path, from, since } = this;
    const isOurs = file === undefined;
    this.#note = { file: path, from, since, isOurs, isOneProcess, command: undefined, address, hello, to };
    // Skaffold would make the files with the permissions of the umask.
    if (isOurs) for (const one of filesOf(path)) writeFileSync(one, "", { mode: 0o600 });
    this.#write();
  }

  runs(command: number): void {
    this.#note = { ...this.#note, command, commandStarted: identityOf(command).started };
    this.#write();
  }

  /** The command is recorded under this name. */
  named(hello: TapIdentity): void {
    this.#note = { ...this.#note, hello };
    this.#write();
  }

  /** Removes the file and the note after everything was read. */
  remove(): void {
    removeEventLog(this.#notePath, this.#note);
    noteOwner(this.#notePath, false);
  }

  /** Gives the file up, so that another process may read it. The command's messages end at that offset. */
  leave(until: EventLogOffsets): void {
    this.#note = { ...this.#note, until };
    this.#write();
    noteOwner(this.#notePath, false);
  }

  #write(): void {
    try {
      writeNote(this.#notePath, { ...this.#note, ...thisProcess() });
      noteOwner(this.#notePath, true);
    } catch (cause) {
      // The note is needed only if this process is killed, so the command continues without it.
      if (this.#note.command === undefined) throw cause;
    }
  }
}

/** Writes the note atomically. */
export function writeNote(path: string, note: EventLogNote): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(note)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Removes the note, and the file if Tapedeck chose it. */
export function removeEventLog(notePath: string, { file, isOurs }: Pick<EventLogNote, "file" | "isOurs">): void {
  if (isOurs) for (const one of filesOf(file)) rmSync(one, { force: true });
  rmSync(notePath, { force: true });
}
