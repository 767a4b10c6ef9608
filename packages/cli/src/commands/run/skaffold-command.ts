import { basename } from "node:path";

/** What a command line says about the Skaffold in it. */
export type SkaffoldCommand = {
  /** True when the command is Skaffold itself, not something that may start one. */
  readonly isSkaffold: boolean;
  /** "dev", "build" …; undefined when there is none or it is not Skaffold itself. */
  readonly subcommand: string | undefined;
  /** The user's own, by flag or variable; undefined: choose one. */
  readonly rpcPort: string | undefined;
  /** Value of -f, --filename or SKAFFOLD_FILENAME. */
  readonly filename: string | undefined;
  /** The user's own, by flag or variable; undefined: choose one. "" means that the user wants no file. */
  readonly eventLogFile: string | undefined;
};

/** Skaffold's global flags that take no value; every other flag before the subcommand may have one behind it. */
const valueless: ReadonlySet<string> = new Set(["--help", "-h", "--interactive", "--timestamps", "--update-check"]);

export function readSkaffoldCommand(
  given: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): SkaffoldCommand {
  const [program = "", ...args] = given;
  const isSkaffold = basename(program).replace(/\.exe$/i, "") === "skaffold";
  const byVariable = {
    rpcPort: nonEmpty(env.SKAFFOLD_RPC_PORT),
    filename: nonEmpty(env.SKAFFOLD_FILENAME),
    eventLogFile: nonEmpty(env.SKAFFOLD_EVENT_LOG_FILE),
  };
  if (!isSkaffold) return { isSkaffold, subcommand: undefined, ...byVariable };
  const end = args.indexOf("--");
  const flags = end < 0 ? args : args.slice(0, end);
  return {
    isSkaffold,
    subcommand: subcommandOf(flags),
    rpcPort: flagValue(flags, "--rpc-port") ?? byVariable.rpcPort,
    filename: flagValue(flags, "--filename") ?? flagValue(flags, "-f") ?? byVariable.filename,
    eventLogFile: flagValue(flags, "--event-log-file") ?? byVariable.eventLogFile,
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

/** `--flag value`, `--flag=value`, `-f value`, `-fvalue`; "" for a flag without one. The last one counts. */
function flagValue(args: readonly string[], flag: string): string | undefined {
  let value: string | undefined;
  for (const [at, arg] of args.entries()) {
    if (arg === flag) value = args[at + 1] ?? "";
    else if (arg.startsWith(`${flag}=`)) value = arg.slice(flag.length + 1);
    else if (flag.length === 2 && arg.startsWith(flag) && !arg.startsWith("--")) value = arg.slice(2);
  }
  return value;
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}
