import { basename } from "node:path";
import { ownValue } from "@tapedeck/shared/own-value";

/** What a command line reveals about its Skaffold. */
export type SkaffoldCommand = {
  /** True when the command is Skaffold itself, not something that may start one. */
  readonly isSkaffold: boolean;
  /** "dev", "build" …; undefined if there is none or it is not Skaffold itself. */
  readonly subcommand: string | undefined;
  /** The user's own, by flag or variable; undefined: choose one. */
  readonly rpcPort: string | undefined;
  /** Value of -f, --filename or SKAFFOLD_FILENAME. */
  readonly filename: string | undefined;
  /** The user's own, by flag or variable; undefined: choose one. "" means that the user wants no file. */
  readonly eventLogFile: string | undefined;
  /** The flags or variables that choose which parts are built and where they go, in one form: "--profile=a,b". */
  readonly choices: readonly string[];
};

/** By their long names. A value of another option may be a secret. */
const choosing: ReadonlyMap<string, string | undefined> = new Map([
  ["--filename", "-f"],
  ["--module", "-m"],
  ["--profile", "-p"],
  ["--kube-context", undefined],
  ["--namespace", "-n"],
  ["--default-repo", "-d"],
  ["--platform", undefined],
]);

/** Skaffold's global flags that take no value; every other flag before the subcommand may have one behind it. */
const valueless: ReadonlySet<string> = new Set(["--help", "-h", "--interactive", "--timestamps", "--update-check"]);

export function readSkaffoldCommand(
  command: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): SkaffoldCommand {
  const [program = "", ...args] = command;
  const isSkaffold = basename(program).replace(/\.exe$/i, "") === "skaffold";
  const byVariable = {
    rpcPort: nonEmpty(env.SKAFFOLD_RPC_PORT),
    filename: nonEmpty(env.SKAFFOLD_FILENAME),
    eventLogFile: nonEmpty(env.SKAFFOLD_EVENT_LOG_FILE),
  };
  if (!isSkaffold) return { isSkaffold, subcommand: undefined, ...byVariable, choices: [] };
  const end = args.indexOf("--");
  const flags = end < 0 ? args : args.slice(0, end);
  return {
    isSkaffold,
    subcommand: subcommandOf(flags),
    rpcPort: flagValue(flags, "--rpc-port") ?? byVariable.rpcPort,
    filename: flagValue(flags, "--filename") ?? flagValue(flags, "-f") ?? byVariable.filename,
    eventLogFile: flagValue(flags, "--event-log-file") ?? byVariable.eventLogFile,
    choices: choicesOf(flags, env),
  };
}

/** The first word that is no flag and no flag's value, as Skaffold's own command-line library finds it. */
function subcommandOf(args: readonly string[]): string | undefined {
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (!arg.startsWith("-")) return arg;
    const hasValueBehind = !arg.includes("=") && !valueless.has(arg) && (arg.startsWith("--") || arg.length === 2);
    if (hasValueBehind) at++;
  }
  return undefined;
}

function choicesOf(flags: readonly string[], env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return [...choosing].flatMap(([long, short]) => {
    const values = [...flagValues(flags, long), ...(short === undefined ? [] : flagValues(flags, short))];
    const variable = `SKAFFOLD_${long.slice(2).toUpperCase().replaceAll("-", "_")}`;
    const value = values.length > 0 ? values.join(",") : nonEmpty(ownValue(env, variable));
    return value === undefined ? [] : [`${long}=${value}`];
  });
}

/** The last one counts. */
function flagValue(args: readonly string[], flag: string): string | undefined {
  return flagValues(args, flag).at(-1);
}

/** `--flag value`, `--flag=value`, `-f value`, `-fvalue`; "" for a flag without one. */
function flagValues(args: readonly string[], flag: string): readonly string[] {
  return args.flatMap((arg, at) => {
    if (arg === flag) return [args[at + 1] ?? ""];
    if (arg.startsWith(`${flag}=`)) return [arg.slice(flag.length + 1)];
    return flag.length === 2 && arg.startsWith(flag) && !arg.startsWith("--") ? [arg.slice(2)] : [];
  });
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}
