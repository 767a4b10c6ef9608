import { accessSync, constants } from "node:fs";
import { constants as system } from "node:os";
import { delimiter, dirname, join } from "node:path";
import type { Transform } from "node:stream";
import { commandToStart } from "@tapedeck/shared/installation";
import { namePart } from "@tapedeck/shared/source";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { sentenceOf } from "../../command-error.ts";
import { printError } from "../../display/output.ts";
import { ciLabels, gitNames, gitState, type Labels, sessionLabels } from "../../record/labels.ts";
import { spillHome } from "../../record/spill-home.ts";
import { type CommandExit, type CommandProcess, startCommand } from "./command-process.ts";
import type { RunOptions } from "./options.ts";
import { planRun, type RunPlan } from "./plan.ts";
import type { CommandRecording, Left } from "./record-command.ts";
import {
  type CommandRequest,
  type Recordable,
  type RecordableCommand,
  type RecordableUpstream,
  recordableUpstreams,
} from "./recordable.ts";
import { sessionLines } from "./session-lines.ts";
import { skaffold } from "./skaffold.ts";
import { vagrant } from "./vagrant.ts";

/** Set for the command: names the upstreams that a `tapedeck run` around it records already. */
const insideOf = "TAPEDECK_RUN";

const recordables = { skaffold, vagrant } satisfies Readonly<Record<RecordableUpstream, RecordableCommand>>;

/** Runs a command in our place and records the upstream in it. Ends this process as the command ended. */
export async function run(command: readonly string[], options: RunOptions): Promise<void> {
  const { env } = process;
  const outer = (env[insideOf] ?? "").split(",").filter((name) => name !== "");
  const upstream = options.upstream ?? upstreamOf(command[0] ?? "");
  if (isOn(env.TAPEDECK_OFF) || outer.includes(upstream)) return runAsItIs(command);

  const prepared = await prepare(upstream, { command, env, folder: process.cwd(), find: options.find }, options);
  if (prepared === undefined) return runAsItIs(command);
  const { recordable, plan } = prepared;
  const inside = { [insideOf]: [...outer, upstream].join(","), ...eventLogVariable(prepared) };
  // The command does not get Tapedeck's own credentials.
  const { TAPEDECK_TOKEN: _, ...inherited } = env;
  const ran = await start(recordable.command, { ...inherited, ...recordable.env, ...inside }, recordable.stderr, plan);
  const recording = record(prepared, command, ran, options);
  const exit = await ran.exited;
  // From here on signals are handled here.
  const abort = abortSignal();
  ran.release();
  const recorded = await unlessHurried(recording, abort.signal);
  if (recorded !== undefined) await finish(recorded, options.url, abort.signal);
  abort.release();
  endAs(exit);
}

/**
 * A program that may start anything, such as `make`, is assumed to start a Skaffold: that costs nothing if it does not.
 */
function upstreamOf(program: string): RecordableUpstream {
  return recordableUpstreams.find((name) => recordables[name].isIt(program)) ?? "skaffold";
}

type Prepared = { readonly recordable: Recordable; readonly plan: RunPlan };

async function prepare(
  upstream: RecordableUpstream,
  requested: CommandRequest,
  options: RunOptions,
): Promise<Prepared | undefined> {
  try {
    const recordable = await recordables[upstream].prepare(requested);
    if (recordable === undefined) return undefined;
    const plan = await planRun(recordable, options, requested.env);
    if (plan.reason !== undefined) warn(plan.reason);
    for (const [what, given] of [
      ["developer", options.developer],
      ["project", options.project],
    ] as const) {
      if (given && namePart(given) !== given) warn(`${what} "${given}" is recorded as ${namePart(given)}`);
    }
    return { recordable, plan };
  } catch (error) {
    unrecorded(error);
    return undefined;
  }
}

function eventLogVariable({ recordable, plan: { eventLog } }: Prepared): Record<string, string> {
  return recordable.eventLog && eventLog ? { [recordable.eventLog.variable]: eventLog.path } : {};
}

/**
 * Records once the address of the upstream is known. If it never is, the upstream's own command is still recorded; undefined
 * for another command.
 */
async function record(
  { recordable, plan }: Prepared,
  command: readonly string[],
  { pid, exited }: CommandProcess,
  options: RunOptions,
): Promise<CommandRecording | undefined> {
  const { env } = process;
  const started = timestampNow();
  const folder = process.cwd();
  const ended = new AbortController();
  void exited.then(() => ended.abort());
  plan.eventLog?.runs(pid);
  try {
    // Loaded while the command starts.
    const loading = import("./record-command.ts");
    const address = await recordable.address({ pid, ended: ended.signal });
    const { upstream, settings, isUpstream, endsInside } = recordable;
    if (address === undefined && !isUpstream) {
      if (recordable.notFound !== undefined) unrecorded(recordable.notFound);
      return undefined;
    }
    const { recordCommand } = await loading;
    const given: Labels = { ...recordable.labels, ...options.label };
    return await recordCommand({
      upstream,
      command,
      started,
      address,
      notFound: recordable.notFound,
      settings,
      plan,
      sessions: sessionLines(options.url, env, warn),
      developer: options.developer || undefined,
      labels: sessionLabels(folder, env).then((labels) => ({ ...labels, ...given })),
      ...(upstream === "skaffold" && { git: gitOf(folder, { ...ciLabels(env), ...given }) }),
      isUpstream,
      endsInside,
      exited,
      warn,
    });
  } catch (error) {
    unrecorded(error);
    return undefined;
  }
}

/** The labels that git gives for the code, except those that are set otherwise. */
function gitOf(folder: string, given: Labels) {
  return { names: gitNames.filter((name) => !Object.hasOwn(given, name)), readGit: () => gitState(folder) };
}

function unrecorded(why: unknown): void {
  warn(`this command is not recorded: ${sentenceOf(why)}`);
}

/** Nothing of us stays: the command takes over this very process, where the system can do that. */
async function runAsItIs([program = "", ...args]: readonly string[]): Promise<void> {
  const path = program.includes("/") ? program : onPath(program);
  if (path !== undefined && process.execve !== undefined) {
    process.execve(path, [program, ...args], process.env as Record<string, string>);
  }
  const ran = await start([program, ...args], process.env);
  endAs(await ran.exited);
}

function endAs({ code, signal }: CommandExit): never {
  if (signal !== null) process.kill(process.pid, signal);
  process.exit(code ?? 128 + (system.signals[signal ?? "SIGTERM"] ?? 15));
}

/** The first signal means: don't wait. */
function abortSignal() {
  const abort = new AbortController();
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const quick = () => abort.abort();
  for (const signal of signals) process.on(signal, quick);
  return {
    signal: abort.signal,
    release: () => {
      for (const signal of signals) process.off(signal, quick);
    },
  };
}

/**
 * Work that has not begun is not waited for: it has received nothing, and the event log file is left to the next run.
 */
async function unlessHurried<Value>(value: Promise<Value>, abort: AbortSignal): Promise<Value | undefined> {
  const over = new AbortController();
  const hurried = new Promise<undefined>((resolve) => {
    abort.addEventListener("abort", () => resolve(undefined), { signal: over.signal });
  });
  return Promise.race([value, hurried]).finally(() => over.abort());
}

async function finish(recording: CommandRecording, url: string | undefined, abort: AbortSignal): Promise<void> {
  try {
    const left = await recording.finish(abort);
    const why = left.reason === undefined ? "" : ` (${left.reason})`;
    if (left.waiting > 0) {
      warn(`not recorded yet${why}: the recording waits in ${left.folder} for the next ${whoTakes(left, url)}`);
    } else if (left.unread) {
      warn("not everything is recorded yet: the next `tapedeck run` records the rest of Skaffold's events");
    }
  } catch (error) {
    warn(`what was not recorded yet is lost: ${sentenceOf(error)}`);
  }
}

/** All commands look for waiting recordings in the same folder, unless a setting names another one. */
function whoTakes({ folder, to }: Left, url: string | undefined): string {
  const home = dirname(folder);
  const inHome = home === spillHome(process.env) ? "" : `TAPEDECK_SPILL=${home} `;
  if (/^(127\.|localhost:|\[::1\]:)/.test(to)) return `\`${inHome}${commandToStart("--no-demo")}\``;
  return `\`tapedeck run\` to there, or \`${inHome}tapedeck record --waiting${url === undefined ? "" : ` --url ${url}`}\``;
}

async function start(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  stderr?: Transform,
  plan?: RunPlan,
): Promise<CommandProcess> {
  try {
    return await startCommand(command, env, stderr);
  } catch (error) {
    plan?.eventLog?.remove();
    const [program = ""] = command;
    const { code } = error as NodeJS.ErrnoException;
    // A folder on the PATH that may not be looked into makes EACCES of any name that is nowhere.
    const missing = code === "ENOENT" || (code === "EACCES" && !program.includes("/") && onPath(program) === undefined);
    const why = code === "EACCES" ? "permission denied" : sentenceOf(error);
    warn(missing ? `${program}: command not found` : `${program} can't be run: ${why}`);
    // The exit codes of a shell.
    process.exit(missing ? 127 : 126);
  }
}

function onPath(program: string): string | undefined {
  return (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

function isOn(text: string | undefined): boolean {
  return text !== undefined && !["", "0", "false", "off", "no"].includes(text.toLowerCase());
}

function warn(line: string): void {
  printError(`tapedeck: ${line}`);
}
