import { namePart } from "@tapedeck/shared/source";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { CommandError, sentenceOf } from "../../command-error.ts";
import { didYouMean, runOfOthers } from "../../mistakes.ts";
import { ChangedFilesReader } from "../../recording/changed-files.ts";
import { ciLabels, gitNames, gitState, type Labels, sessionLabels } from "../../recording/labels.ts";
import { onFatalError } from "../fatal-error.ts";
import { abortSignal, unlessAborted } from "./abort-signal.ts";
import type { CommandExit, CommandProcess } from "./command-process.ts";
import type { RunOptions } from "./options.ts";
import { planRun, type RunPlan } from "./plan.ts";
import type { CommandRecording } from "./record-command.ts";
import {
  type CommandRequest,
  type Recordable,
  type RecordableCommand,
  type RecordableUpstream,
  recordableUpstreams,
} from "./recordable.ts";
import type { RunNotices } from "./run-notices.ts";
import { type SessionLines, sessionLines } from "./session-lines.ts";
import { skaffold } from "./skaffold/skaffold.ts";
import { endAs, runAsItIs, start } from "./start-program.ts";
import { vagrant } from "./vagrant/vagrant.ts";
import { warn, warnOfLeft, warnUnrecorded } from "./warnings.ts";

/** Set for the command: names the upstreams that a `tapedeck run` around it records already. */
const insideOf = "TAPEDECK_RUN";

const recordables = { skaffold, vagrant } satisfies Readonly<Record<RecordableUpstream, RecordableCommand>>;

/** Runs a command in our place and records the upstream in it. Ends this process as the command ended. */
export async function run(command: readonly string[], options: RunOptions): Promise<void> {
  const { argv, env } = process;
  const others = argv.includes("--") ? undefined : runOfOthers(command);
  if (others !== undefined)
    throw new CommandError(`\`run\` runs a command and records it (\`run -- ${command[0]}\`).\n${didYouMean(others)}`);
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
  const commandEnded = outliveErrors();
  const notices = (options.notify ?? isOn(env.TAPEDECK_NOTIFY)) ? openNotices(command, options) : undefined;
  const recording = record(prepared, command, ran, { ...options, notices });
  const exit = await ran.exited;
  commandEnded(exit);
  // From here on signals are handled here.
  const abort = abortSignal();
  ran.release();
  const recorded = await unlessAborted(recording, abort.signal);
  if (recorded !== undefined) await finish(recorded, options.url, abort.signal);
  const shown = notices?.then((opened) => opened?.ended(exit, recordable.isUpstream, abort.signal));
  // Whatever becomes of a notice, the command has ended as it has.
  await unlessAborted(shown ?? Promise.resolve(), abort.signal).catch(() => {});
  abort.release();
  endAs(exit);
}

/**
 * An error of ours that nothing has caught ends the recording, and neither the command nor its exit code. To be called with that
 * when the command has ended.
 */
function outliveErrors(): (exit: CommandExit) => void {
  let isBroken = false;
  let ended: CommandExit | undefined;
  onFatalError((error) => {
    if (!isBroken) warn(`the recording of this command has stopped: ${sentenceOf(error)}`);
    isBroken = true;
    if (ended !== undefined) endAs(ended);
  });
  return (exit) => {
    ended = exit;
    if (isBroken) endAs(exit);
  };
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
    for (const [what, value] of [
      ["developer", options.developer],
      ["project", options.project],
    ] as const) {
      if (value && namePart(value) !== value) warn(`${what} "${value}" is recorded as ${namePart(value)}`);
    }
    return { recordable, plan };
  } catch (error) {
    warnUnrecorded(error);
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
  options: RunOptions & { readonly notices: Promise<RunNotices | undefined> | undefined },
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
      if (recordable.notFound !== undefined) warnUnrecorded(recordable.notFound);
      return undefined;
    }
    const { recordCommand } = await loading;
    const ownLabels: Labels = { ...recordable.labels, ...options.label };
    return await recordCommand({
      upstream,
      command,
      started,
      address,
      notFound: recordable.notFound,
      settings,
      plan,
      sessions: withNotices(sessionLines(options.url, env, warn), options.notices),
      developer: options.developer || undefined,
      labels: sessionLabels(folder, env).then((labels) => ({ ...labels, ...ownLabels })),
      ...(upstream === "skaffold" && { git: gitOf(folder, { ...ciLabels(env), ...ownLabels }) }),
      isUpstream,
      endsInside,
      exited,
      warn,
    });
  } catch (error) {
    warnUnrecorded(error);
    return undefined;
  }
}

/** Undefined: they can't be loaded, which must not stop the command. */
async function openNotices(command: readonly string[], { url }: RunOptions): Promise<RunNotices | undefined> {
  try {
    const { RunNotices } = await import("./run-notices.ts");
    return new RunNotices(url, command, warn);
  } catch {
    return undefined;
  }
}

function withNotices(
  lines: SessionLines,
  notices: Promise<RunNotices | undefined> = Promise.resolve(undefined),
): SessionLines {
  return {
    welcomed: (source) => {
      lines.welcomed(source);
      void notices.then((opened) => opened?.welcomed(source));
    },
    found: (session) => {
      lines.found(session);
      void notices.then((opened) => opened?.found(session));
    },
    end: async (abort, exit) => {
      const failures = await lines.end(abort, exit);
      const opened = await notices;
      for (const { what, why } of failures) opened?.failed(what, why);
      return failures;
    },
  };
}

/** The labels that git gives for the code, except those that are set otherwise. */
function gitOf(folder: string, labels: Labels) {
  const files = new ChangedFilesReader(folder);
  return {
    names: gitNames.filter((name) => !Object.hasOwn(labels, name)),
    readGit: () => gitState(folder),
    readFiles: () => files.read(),
  };
}

function isOn(text: string | undefined): boolean {
  return text !== undefined && !["", "0", "false", "off", "no"].includes(text.toLowerCase());
}

async function finish(recording: CommandRecording, url: string | undefined, abort: AbortSignal): Promise<void> {
  try {
    warnOfLeft(await recording.finish(abort), url);
  } catch (error) {
    warn(`unrecorded data is lost: ${sentenceOf(error)}`);
  }
}
