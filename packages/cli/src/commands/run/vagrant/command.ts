import { ownValue } from "@tapedeck/shared/own-value";
import type { Env } from "../recordable.ts";

/** What a Vagrant command line reveals. */
export type VagrantCommand = {
  /** "up", "box add" …; undefined where there is none. */
  readonly subcommand: string | undefined;
  /** It only prints information about the program. */
  readonly isInformational: boolean;
  /** The log level that the user set for stderr; undefined: none. */
  readonly logLevel: LogLevel | undefined;
};

/** Ordered from everything to nothing. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "off"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Commands whose name is two words. */
const families: ReadonlySet<string> = new Set(["box", "cloud", "plugin", "snapshot"]);

/** Vagrant's flags of its log. */
const verbosity: Readonly<Record<string, LogLevel>> = {
  "-V": "info",
  "-VV": "debug",
  "-VVV": "trace",
  "-VVVV": "trace",
  "--debug": "debug",
  "--debug-timestamp": "debug",
};

export function readVagrantCommand(args: readonly string[], env: Env): VagrantCommand {
  const end = args.indexOf("--");
  const own = end < 0 ? args : args.slice(0, end);
  const words = own.filter((arg) => !arg.startsWith("-"));
  const [first, second] = words;
  const subcommand = first !== undefined && families.has(first) && second !== undefined ? `${first} ${second}` : first;
  const isInformational =
    first === undefined || first === "version" || first === "help" || own.includes("-h") || own.includes("--help");
  const levels = [env.VAGRANT_LOG_LEVEL?.toLowerCase(), ...own.map((arg) => ownValue(verbosity, arg))];
  const logLevel = logLevels.find((level) => levels.includes(level));
  return { subcommand, isInformational, logLevel };
}
