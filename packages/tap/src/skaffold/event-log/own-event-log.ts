import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { noteOwner } from "../../spill/ownership.ts";
import { identityOf, type ProcessIdentity, thisProcess } from "../../spill/process-identity.ts";
import type { TapIdentity } from "../../spill/spill-folder.ts";
import { type EventLogPlace, endOf, filesOf } from "./event-log-place.ts";

/** What is known of an event log file by whoever finds it: beside spills, as `<tap>.events.json`. The process is the tap's. */
export type EventLogNote = ProcessIdentity & {
  readonly file: string;
  readonly from: EventLogPlace;
  /** What was added behind it is another command's; undefined: nobody has seen the end of this one. */
  readonly until?: EventLogPlace | undefined;
  /** Before the command began, in ms since 1970; undefined: nobody has written to the file who began before. */
  readonly since?: number | undefined;
  /** The file is ours and nobody needs it when it has been read. */
  readonly isOurs: boolean;
  readonly isOneProcess: boolean;
  /** Whoever lives of these may still write to the file: the command's process, and whoever listens at that address. */
  readonly command: number | undefined;
  readonly commandStarted?: string | undefined;
  readonly address: string;
  readonly hello: TapIdentity;
  readonly to: string;
};

export const noteSuffix = ".events.json";

export type OwnEventLogOptions = Pick<EventLogNote, "isOneProcess" | "address" | "hello" | "to"> & {
  /** Where taps leave their spills. */
  readonly home: string;
  /** The user's own file; undefined: one of ours. */
  readonly file: string | undefined;
};

/**
 * The event log file of a command's Skaffold, and a note beside it by which another process takes it when this one is
 * killed. Made before the command starts.
 */
export class OwnEventLog {
  /** Of the file. */
  readonly path: string;
  /** Where it ended before the command. */
  readonly from: EventLogPlace;
  /**
   * Before the command began, in ms since 1970, by more than a clock is set at once. Undefined for a file of ours: all who
   * write to it have been started by the command.
   */
  readonly since: number | undefined;
  readonly #path: string;
  #note: Omit<EventLogNote, keyof ProcessIdentity>;

  /** @throws what the system says where they can't be made */
  constructor({ home, hello, file, to, isOneProcess, address }: OwnEventLogOptions) {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    this.#path = join(home, `${hello.tap}${noteSuffix}`);
    this.path = file ?? join(home, `${hello.tap}.events.log`);
    this.from = endOf(this.path);
    this.since = file === undefined ? undefined : Date.now() - 1_000;
    const { path, from, since } = this;
    const isOurs = file === undefined;
    this.#note = { file: path, from, since, isOurs, isOneProcess, command: undefined, address, hello, to };
    // Skaffold would make them with what the umask leaves.
    if (isOurs) for (const one of filesOf(path)) writeFileSync(one, "", { mode: 0o600 });
    this.#write();
  }

  runs(command: number): void {
    this.#note = { ...this.#note, command, commandStarted: identityOf(command).started };
    this.#write();
  }

  /** It is recorded under this name. */
  named(hello: TapIdentity): void {
    this.#note = { ...this.#note, hello };
    this.#write();
  }

  /** All of it was taken. */
  remove(): void {
    removeEventLog(this.#path, this.#note);
    noteOwner(this.#path, false);
  }

  /** From here on it is nobody's. All that is the command's stands before that place. */
  leave(until: EventLogPlace): void {
    this.#note = { ...this.#note, until };
    this.#write();
    noteOwner(this.#path, false);
  }

  #write(): void {
    try {
      writeNote(this.#path, { ...this.#note, ...thisProcess() });
      noteOwner(this.#path, true);
    } catch (cause) {
      // Only what a next start would need.
      if (this.#note.command === undefined) throw cause;
    }
  }
}

/** All of it at once. */
export function writeNote(path: string, note: EventLogNote): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(note)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export function removeEventLog(notePath: string, { file, isOurs }: Pick<EventLogNote, "file" | "isOurs">): void {
  if (isOurs) for (const one of filesOf(file)) rmSync(one, { force: true });
  rmSync(notePath, { force: true });
}
