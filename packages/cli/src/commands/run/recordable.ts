import type { Transform } from "node:stream";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { Labels } from "../../recording/labels.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** Those that live in a command. */
export const recordableUpstreams = ["skaffold", "vagrant"] as const satisfies readonly UpstreamName[];
export type RecordableUpstream = (typeof recordableUpstreams)[number];

export const finds = ["sockets", "log"] as const;
export type Find = (typeof finds)[number];

/** The command that a recordable upstream is prepared for. */
export type CommandRequest = {
  readonly command: readonly string[];
  readonly env: Env;
  /** Where the command runs. */
  readonly folder: string;
  /** How to find out where the upstream listens, where there are two ways; undefined: the one that this system allows. */
  readonly find?: Find | undefined;
};

export type EventLog = {
  /** The variable that names the file to the command. */
  readonly variable: string;
  /** The user's own; "": there is to be none; undefined: one is to be chosen. */
  readonly file: string | undefined;
  /** Address of the process that writes it. */
  readonly address: string;
};

/** A command as it has to be run so that the upstream in it can be recorded. */
export type Recordable = {
  readonly upstream: RecordableUpstream;
  /** The command is the upstream's own program, so its end and exit code are the session's. */
  readonly isUpstream: boolean;
  /**
   * The command starts the upstream's process, which ends with it and closes its connection: the tap does not know the
   * end apart.
   */
  readonly endsInside?: boolean;
  readonly command: readonly string[];
  /** Added to the inherited environment. */
  readonly env: Env;
  /** The project's name, as long as the user gives none. */
  readonly project: () => string;
  readonly labels: Labels;
  /** Settings of the upstream's tap. */
  readonly settings?: Readonly<Record<string, string>>;
  /** If present, the command's stderr is piped through this. Otherwise the command inherits stderr. */
  readonly stderr?: Transform;
  /**
   * Address of the upstream in the command, as soon as it is known; undefined if the command has ended before.
   * Never rejects.
   */
  readonly address: (ran: { readonly pid: number; readonly ended: AbortSignal }) => Promise<string | undefined>;
  /** The file to which the upstream writes all its events at its end: it has what the streams missed. */
  readonly eventLog?: EventLog;
  /** Message for a command that ended without an address; undefined: no message. */
  readonly notFound?: string;
};

export type RecordableCommand = {
  /** True for a command that is this upstream's own program. */
  readonly isIt: (program: string) => boolean;
  /**
   * Undefined for a command in which there is nothing to record.
   * @throws CommandError when the command can't be recorded, with why
   */
  readonly prepare: (request: CommandRequest) => Promise<Recordable | undefined>;
};

/** `/usr/bin/vagrant` → "vagrant". */
export function programName(program: string): string {
  return (program.split(/[/\\]/).at(-1) ?? "").replace(/\.exe$/i, "").toLowerCase();
}
