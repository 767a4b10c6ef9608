import { pause } from "@tapedeck/shared/sync/delay";
import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments } from "@tapedeck/shared/time/moment";
import { wallClock } from "@tapedeck/shared/time/wall-clock";
import type { TapItem } from "../../tap.ts";
import { momentOf } from "../frame-moment.ts";
import type { ImportedFrame } from "./event-log-file.ts";
import type { EventLogTail, IsHeard } from "./event-log-tail.ts";
import { FiledConnection } from "./filed-connection.ts";
import { FiledProcesses } from "./filed-processes.ts";
import { HeardFrames } from "./heard-frames.ts";

export type CompletingOptions = {
  /** Takes an item at once; undefined if it had to be dropped. */
  readonly append: (item: TapItem) => bigint | undefined;
  readonly tail: EventLogTail;
  /** One process is recorded: the command itself. Else processes follow on each other in the file. */
  readonly isOneProcess: boolean;
  /** Before the command: what was said earlier is not its own. Undefined: nobody was there. */
  readonly since?: Moment | undefined;
  /** The command has ended, and with it all that could write to the file. */
  readonly ended: AbortSignal;
};

/** A connection that a tap made. */
type Heard = {
  readonly id: string;
  /** The earliest time of a message. */
  first: Moment | undefined;
  /** Channels that the connection has not given whole. */
  readonly torn: Set<string>;
  /** Lines that the file had before it. */
  readonly lines: EventLogTail["lines"];
};

/** For a process that is gone to have written its file: it does so before its connections are cut. A killed one never does. */
const writtenMs = 2_000;
const lookMs = 50;

/**
 * Stands between a tap of Skaffold and its spill, and adds what the event log file has and the streams did not give: the
 * rest of a process before the end of its connection, and processes that nobody could connect to in time. All it is told
 * comes out in order; what is told while the file is read waits in memory.
 */
export class Completing {
  readonly #options: CompletingOptions;
  readonly #heard = new HeardFrames();
  readonly #now = wallClock();
  readonly #waiting: TapItem[] = [];
  #current: Heard | undefined;
  #reading: Promise<void> | undefined;
  readonly #leaving = new AbortController();
  /** All that was read of the file was told. */
  #isWhole = true;

  constructor(options: CompletingOptions) {
    this.#options = options;
  }

  take(item: TapItem): void {
    if (this.#reading === undefined) this.#pass(item);
    else this.#waiting.push(item);
  }

  /**
   * After the end of the command: the rest of what it said, before the end of the connection that is still open for it. The
   * exit code is that of a process that nobody has heard. False when the signal broke a reading off, or the file could not be
   * read: then it has more. With the signal this ends at once, wherever it is.
   */
  async finish(open: string | undefined, exitCode: number | undefined, signal: AbortSignal): Promise<boolean> {
    const leave = () => this.#leaving.abort();
    signal.addEventListener("abort", leave);
    if (signal.aborted) leave();
    while (this.#reading !== undefined) await this.#reading;
    const heard = open !== undefined && open === this.#current?.id ? this.#current : undefined;
    const others = new FiledProcesses(this.#options.append);
    await this.#complete(heard, others, exitCode);
    await this.#tell(others);
    signal.removeEventListener("abort", leave);
    return this.#isWhole && !this.#leaving.signal.aborted;
  }

  #pass(item: TapItem): void {
    const { connection, what } = item;
    const { isOneProcess, tail, append } = this.#options;
    if (what?.$case === "dialled") {
      this.#current = { id: connection, first: undefined, torn: new Set(), lines: tail.lines };
    }
    const isEnd = what?.$case === "closed" && what.value.process_ended;
    if (what?.$case === "dialled" && !isOneProcess && tail.hasMore) this.#meanwhile(this.#beforeIt(item));
    else if (isEnd && !isOneProcess) this.#meanwhile(this.#withRest(item));
    else {
      const isKept = append(item) !== undefined;
      if (what?.$case === "channel_ended") this.#current?.torn.add(what.value.channel);
      if (what?.$case === "frame") this.#hear(what.value, isKept);
    }
  }

  #hear({ channel, bytes }: { readonly channel: string; readonly bytes: Uint8Array }, isKept: boolean): void {
    if (channel === "logs" || this.#current === undefined) return;
    const moment = momentOf(bytes);
    if (moment === undefined) return;
    const { first, torn } = this.#current;
    if (first === undefined || compareMoments(moment, first) < 0) this.#current.first = moment;
    if (isKept) this.#heard.add(channel, moment);
    else torn.add(channel);
  }

  /** What is told until then comes behind it. */
  #meanwhile(reading: Promise<void>): void {
    const goOn = () => {
      this.#reading = undefined;
      while (this.#reading === undefined) {
        const next = this.#waiting.shift();
        if (next === undefined) return;
        this.#pass(next);
      }
    };
    this.#reading = reading.then(goOn);
  }

  /** Processes that were over before anybody could connect to them, and then the next one. */
  async #beforeIt(dialled: TapItem): Promise<void> {
    await this.#tellUnheard();
    this.#options.append(dialled);
  }

  /** The rest of a process, and then its end. */
  async #withRest(closed: TapItem): Promise<void> {
    const { ended, append } = this.#options;
    const heard = this.#current;
    const until = performance.now() + writtenMs;
    const over = AbortSignal.any([ended, this.#leaving.signal]);
    const others = new FiledProcesses(append);
    await this.#complete(heard, others);
    while (this.#heard.size > 0 && !others.isFull && performance.now() < until && !over.aborted) {
      await pause(lookMs, over);
      await this.#complete(heard, others);
    }
    this.#heard.clear();
    append(closed);
    const isMore = others.isFull;
    await this.#tell(others);
    if (isMore) await this.#tellUnheard();
  }

  async #tellUnheard(): Promise<void> {
    const others = new FiledProcesses(this.#options.append);
    await this.#complete(undefined, others);
    await this.#tell(others);
  }

  /** Adds the rest of a process, and hands what others have said to them. */
  async #complete(heard: Heard | undefined, others: FiledProcesses, exitCode?: number): Promise<void> {
    const { tail, isOneProcess, append } = this.#options;
    const { signal } = this.#leaving;
    const alone = new FiledConnection(append);
    const since = isOneProcess ? this.#options.since : heard?.first;
    const isHeard: IsHeard = (channel, moment) => this.#heard.take(channel, moment);
    try {
      const isTold = isOneProcess || since !== undefined;
      const own = isTold ? await tail.ownParts({ heard: this.#heard, since }, signal) : undefined;
      for await (const frame of tail.added(isHeard, signal, own)) {
        const isOwn = frame.isOwn && (since === undefined || compareMoments(frame.moment, since) >= 0);
        if (isOwn && heard !== undefined) this.#add(heard, frame);
        else if (isOwn) alone.frame(frame);
        else if (!isOneProcess) others.add(frame);
        if (!others.isFull) continue;
        // Not before the end of the one that is heard.
        if (heard !== undefined) return;
        await others.tell(signal, { isMoreToCome: true });
      }
    } catch {
      // What was read of it may be less than it seems: whoever takes it later takes all.
      this.#isWhole = false;
      return;
    }
    if (heard !== undefined && !signal.aborted && this.#heard.size === 0) this.#fill(heard);
    if (!signal.aborted) alone.end(exitCode);
  }

  #add({ id }: Heard, { channel, bytes }: ImportedFrame): void {
    const value = { channel, bytes: Buffer.from(bytes), more: false };
    this.#options.append({ connection: id, at: this.#now(), what: { $case: "frame", value } });
  }

  /** All that was heard is in the file, so the file has all; but for a channel that a version does not write. */
  #fill({ id, torn, lines }: Heard): void {
    const { tail, append } = this.#options;
    for (const channel of ["v1", "v2"] as const) {
      if (!torn.delete(channel) || tail.lines[channel] === lines[channel]) continue;
      append({ connection: id, at: this.#now(), what: { $case: "channel_filled", value: { channel } } });
    }
  }

  /** With the signal they stay in the file. */
  async #tell(others: FiledProcesses): Promise<void> {
    try {
      await others.tell(this.#leaving.signal);
    } catch {
      this.#isWhole = false;
    }
  }
}
