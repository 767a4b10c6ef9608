import { join } from "node:path";
import type { CommandRun } from "@tapedeck/proto/tapedeck/v1/event";
import { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import type { Frame } from "@tapedeck/proto/tapedeck/v1/recorder";
import { delay } from "@tapedeck/shared/sync/delay";
import { startTimer, stopTimer, timeoutSignal } from "@tapedeck/shared/sync/timers";
import { type Timestamp, timestampOfMs } from "@tapedeck/shared/time/timestamp";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { Completing } from "@tapedeck/tap/skaffold/event-log/completing";
import { endOf } from "@tapedeck/tap/skaffold/event-log/event-log-offsets";
import { EventLogTail } from "@tapedeck/tap/skaffold/event-log/event-log-tail";
import { openSpill, type Spill } from "@tapedeck/tap/spill/spill";
import type { TapItem } from "@tapedeck/tap/tap";
import { taps } from "@tapedeck/tap/taps";
import type { Labels } from "../../recording/labels.ts";
import { pushSource } from "../../recording/source-push.ts";
import type { CommandExit } from "./command-process.ts";
import { commandRun, sessionOfCommand, wrapperRun } from "./command-run.ts";
import { LoopLabelReader, type LoopLabelsOptions } from "./loop-labels.ts";
import type { RunPlan } from "./plan.ts";
import type { SessionLines } from "./session-lines.ts";

export type RecordCommand = {
  readonly upstream: UpstreamName;
  readonly command: readonly string[];
  /** When the command was started. */
  readonly started: Timestamp;
  /** Address of the upstream in the command; undefined if the command ended before it was known. */
  readonly address: string | undefined;
  /** Settings of the upstream's tap. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
  readonly plan: RunPlan;
  readonly sessions: SessionLines;
  /** The developer that the user has named. */
  readonly developer: string | undefined;
  readonly labels: Promise<Labels>;
  /** Absent: the upstream has no dev loops. */
  readonly git?: Pick<LoopLabelsOptions, "names" | "readGit" | "readFiles"> | undefined;
  /** The command is the upstream's process itself, so its end and exit code are the session's. */
  readonly isUpstream: boolean;
  /** The upstream's process is gone when the command has ended and the connection with it. */
  readonly endsInside?: boolean | undefined;
  readonly exited: Promise<CommandExit>;
  /** Why the address is undefined, for people. */
  readonly notFound?: string | undefined;
  /** One line for people, while the command has the terminal. */
  readonly warn: (line: string) => void;
};

export type Left = {
  /** Items that Tapedeck has not taken; they wait in `folder`. */
  readonly waiting: number;
  readonly folder: string;
  /** The Tapedeck that they are meant for, by the name of a target. */
  readonly to: string;
  /** Why, for people. */
  readonly reason: string | undefined;
  /** The event log file holds more, which there was no time for. */
  readonly unread: boolean;
};

export type CommandRecording = {
  /** After the command's end: takes what is still coming, and gives Tapedeck a moment to commit it. */
  readonly finish: (abort: AbortSignal) => Promise<Left>;
};

/**
 * Between the command's end and our own: for its last frames, for what its event log file has more, and for Tapedeck to
 * commit all.
 */
const lastFramesMs = 1_000;
const restMs = 5_000;
const commitMs = 2_000;
/** A command that only starts the upstream's processes usually ends right after the last of them. */
const wrapperMs = 1_000;

/** Starts the tap beside a command: it drains from the first moment, whether Tapedeck is there or not. */
export async function recordCommand(options: RecordCommand): Promise<CommandRecording> {
  const { upstream, address, settings = {}, sessions, warn } = options;
  const { target, home, identity, eventLog } = options.plan;
  const folder = join(home, identity.tap);
  const [spill, tap] = await Promise.all([
    openSpill({ dir: folder, hello: identity, to: target.name }),
    taps[upstream](),
  ]);
  const leaving = new AbortController();
  const keep = keeperOf(options, spill);
  const completing = completingOf(options, keep);
  const append = completing?.take.bind(completing) ?? keep;
  const connections = new Connections(append, options);
  const loopLabels = options.git && new LoopLabelReader({ labels: options.labels, ...options.git, append });
  const emit = (item: TapItem) => {
    connections.emit(item);
    loopLabels?.observe(item);
  };
  const running = address === undefined ? undefined : tap.run({ address, settings, emit, signal: leaving.signal });

  const warned = new Set<string>();
  const push = pushSource({
    target,
    home,
    spill,
    control: running?.control ?? unreachable,
    away: options.plan.away,
    developer: options.developer,
    printLine: warn,
    ...(running?.stream && { stream: running.stream }),
    identity: options.labels.then((labels) => {
      const labelled = { ...identity, labels };
      eventLog?.named(labelled);
      return labelled;
    }),
    onWelcome: (source) => {
      sessions.welcomed(source);
      eventLog?.named(spill.hello());
    },
    onSession: sessions.found,
    // A transient failure is reported only if it persists when the command ends.
    onAway: (failure) => {
      if (failure === undefined || failure.mends || warned.has(failure.why)) return;
      warned.add(failure.why);
      warn(`not recorded for now: ${failure.why}; events are kept on this machine`);
    },
  });

  return {
    finish: async (abort) => {
      await connections.ended(lastFramesMs, abort);
      await loopLabels?.stop(lastFramesMs, abort);
      const exit = await options.exited;
      const run = commandRun(options.command, options.started, exit);
      connections.processEnded(exit, run);
      leaving.abort();
      await running?.done;
      if (isWrapper(options)) connections.close();
      const until = eventLog && endOf(eventLog.path);
      const late = AbortSignal.any([abort, timeoutSignal(restMs)]);
      const ended = { command_run: run, ...(exit.code !== null && { exit_code: exit.code }) };
      const isRead = (await completing?.finish(connections.held, ended, late)) ?? true;
      connections.close();
      if (options.isUpstream && spill.state().nextIndex === 1n) {
        for (const item of sessionOfCommand(run, settings.server)) spill.append(item);
      }
      const all = await push.finish(commitMs, abort);
      const missed = missedBy(options, connections);
      if (missed !== undefined) warn(`${options.isUpstream ? onlyCommand : "this command is not recorded"}: ${missed}`);
      const { committed, nextIndex } = spill.state();
      // A command that opened no port sent nothing, so there is nothing to keep.
      const waiting = all ? 0 : Number(nextIndex - 1n - committed);
      if (waiting > 0) spill.persist();
      await spill[Symbol.asyncDispose]();
      if (isRead) eventLog?.remove();
      else if (until !== undefined) eventLog?.leave(until);
      if (all && isRead) await sessions.end(abort, exit);
      return { waiting, folder, to: target.name, reason: push.failure()?.why, unread: !isRead };
    },
  };
}

const onlyCommand = "only the command line, the exit code and the times of this command are recorded";
const unreachable: NonNullable<Parameters<typeof pushSource>[0]["control"]> = async ({ call }) => ({
  call,
  code: 14,
  message: "the upstream was not found",
  response: Buffer.alloc(0),
});

/** Why nothing of the upstream was seen; undefined if something was. */
function missedBy({ upstream, address, endsInside, notFound }: RecordCommand, seen: Connections): string | undefined {
  if (address === undefined) return notFound ?? "its server was not found";
  // Its server was there when it was found.
  if (endsInside && !seen.wasOpen) return `its server exited before it could be reached (${address})`;
  return upstream === "vagrant" && !seen.sawJob ? "its server exited before its jobs could be read" : undefined;
}

/** The command only starts the upstream's processes. */
function isWrapper({ isUpstream, endsInside = false }: Pick<RecordCommand, "isUpstream" | "endsInside">): boolean {
  return !isUpstream && !endsInside;
}

/** Takes items; the end of a process that the command started gets what is known of the command by then. */
function keeperOf(options: RecordCommand, spill: Spill): Spill["append"] {
  if (!isWrapper(options)) return spill.append;
  let exit: CommandExit | undefined;
  void options.exited.then((ended) => {
    exit = ended;
  });
  return (item) => {
    const { what } = item;
    if (what?.$case !== "closed" || !what.value.process_ended) return spill.append(item);
    const value = { ...what.value, command_run: wrapperRun(options.command, options.started, exit) };
    return spill.append({ ...item, what: { $case: "closed", value } });
  };
}

function completingOf(
  { isUpstream, exited, plan: { eventLog } }: RecordCommand,
  append: Spill["append"],
): Completing | undefined {
  if (eventLog === undefined) return undefined;
  const ended = new AbortController();
  void exited.then(() => ended.abort());
  return new Completing({
    append,
    tail: new EventLogTail(eventLog.path, eventLog),
    isOneProcess: isUpstream,
    since: eventLog.since === undefined ? undefined : timestampOfMs(eventLog.since),
    ended: ended.signal,
  });
}

function isOfJob({ channel, bytes }: Frame): boolean {
  return channel === "jobs" && Observation.decode(bytes).result?.$case === "streamed";
}

/** Hands items on, and knows whether a connection is open. */
class Connections {
  readonly #pass: (item: TapItem) => unknown;
  readonly #command: Pick<RecordCommand, "isUpstream" | "endsInside">;
  #open = 0;
  #wasOpen = false;
  #sawJob = false;
  #held: TapItem | undefined;
  #heldTimer: ReturnType<typeof startTimer> | undefined;
  #idle = Promise.withResolvers<void>();

  constructor(pass: (item: TapItem) => unknown, command: Pick<RecordCommand, "isUpstream" | "endsInside">) {
    this.#pass = pass;
    this.#command = command;
    this.#idle.resolve();
  }

  /** Something could be asked, or heard. */
  get wasOpen(): boolean {
    return this.#wasOpen;
  }

  /** A job of a Vagrant server was seen. */
  get sawJob(): boolean {
    return this.#sawJob;
  }

  /** The connection whose end has not been recorded yet. */
  get held(): string | undefined {
    return this.#held?.connection;
  }

  readonly emit = (item: TapItem): void => {
    this.close();
    if (item.what?.$case === "dialled") {
      this.#wasOpen ||= item.what.value.channels.length > 0;
      if (this.#open++ === 0) this.#idle = Promise.withResolvers();
    }
    this.#sawJob ||= item.what?.$case === "frame" && isOfJob(item.what.value);
    if (item.what?.$case !== "closed") {
      this.#pass(item);
      return;
    }
    // The end of the upstream's process is reported with the command's, which comes later, and with its exit code.
    this.#held = item;
    if (isWrapper(this.#command)) this.#heldTimer = startTimer(() => this.close(), wrapperMs);
    if (--this.#open === 0) this.#idle.resolve();
  };

  close(): void {
    stopTimer(this.#heldTimer);
    if (this.#held !== undefined) this.#pass(this.#held);
    this.#held = undefined;
  }

  /** Resolves when no connection is open, or when it has taken too long. */
  async ended(boundMs: number, abort: AbortSignal): Promise<void> {
    const over = new AbortController();
    const bound = AbortSignal.any([over.signal, abort]);
    await Promise.race([this.#idle.promise, delay(boundMs, bound)]);
    over.abort();
  }

  processEnded({ code }: CommandExit, run: CommandRun): void {
    const { isUpstream } = this.#command;
    if (isWrapper(this.#command) || this.#held?.what?.$case !== "closed") return;
    const value = {
      ...this.#held.what.value,
      process_ended: true,
      command_run: run,
      ...(isUpstream && code !== null && { exit_code: code }),
    };
    this.#held = { ...this.#held, what: { $case: "closed", value } };
  }
}
