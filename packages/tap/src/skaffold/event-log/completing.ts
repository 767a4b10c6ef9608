import { delay } from "@tapedeck/shared/sync/delay";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import type { TapItem } from "../../tap.ts";
import { wallClock } from "../../wall-clock.ts";
import { timestampOf } from "../frame-timestamp.ts";
import type { ImportedFrame } from "./event-log-file.ts";
import type { EventLogTail, IsReceived } from "./event-log-tail.ts";
import type { FiledConnection, ProcessEnd } from "./filed-connection.ts";
import { FiledProcesses } from "./filed-processes.ts";
import { ReceivedFrames } from "./received-frames.ts";

/** What completes a recording from the event log file. */
export type CompletingOptions = {
  /** Takes an item at once. Gives undefined if the item was dropped. */
  readonly append: (item: TapItem) => bigint | undefined;
  readonly tail: EventLogTail;
  /** One process is recorded: the command itself. Otherwise the file has one process after the other. */
  readonly isOneProcess: boolean;
  /** A time before the command: earlier messages are not its own. Undefined if no other process can have written. */
  readonly since?: Timestamp | undefined;
  /** The command has ended, and with it every process that could write to the file. */
  readonly ended: AbortSignal;
};

/** A connection that a tap made. */
type TappedConnection = {
  readonly id: string;
  /** The earliest time of a message. */
  first: Timestamp | undefined;
  /** Channels that the connection has not delivered completely. */
  readonly torn: Set<string>;
  /** The lines of the file before the connection. */
  readonly lines: EventLogTail["lines"];
};

/** A process writes its file before its connections are cut, so this is enough time. A killed process never writes it. */
const writtenMs = 2_000;
const checkIntervalMs = 50;

/**
 * Stands between a tap of Skaffold and its spill, and adds messages that the event log file has and the streams did not
 * deliver: the rest of a process before the end of its connection, and processes that ended before a connection was made.
 * All items come out in order. Items that arrive while the file is read wait in memory.
 */
export class Completing {
  readonly #options: CompletingOptions;
  readonly #received = new ReceivedFrames();
  readonly #now = wallClock();
  readonly #waiting: TapItem[] = [];
  #current: TappedConnection | undefined;
  #reading: Promise<void> | undefined;
  readonly #leaving = new AbortController();
  /** Everything that was read from the file was emitted. */
  #isWhole = true;

  constructor(options: CompletingOptions) {
    this.#options = options;
  }

  take(item: TapItem): void {
    if (this.#reading === undefined) this.#pass(item);
    else this.#waiting.push(item);
  }

  /**
   * Adds the rest of the command's messages after its end, before the end of the connection `open`. `ended` is for a process
   * without a connection. False if the file has more, because the signal aborted or the file could not be read.
   * Returns at once when the signal aborts.
   */
  async finish(open: string | undefined, ended: ProcessEnd, signal: AbortSignal): Promise<boolean> {
    const leave = () => this.#leaving.abort();
    signal.addEventListener("abort", leave);
    if (signal.aborted) leave();
    while (this.#reading !== undefined) await this.#reading;
    const connection = open !== undefined && open === this.#current?.id ? this.#current : undefined;
    const others = new FiledProcesses(this.#options.append);
    await this.#complete(connection, others, ended);
    await this.#emitAll(others);
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
    if (what?.$case === "dialled" && !isOneProcess && tail.hasMore) this.#holdWhile(this.#emitUnreceivedBefore(item));
    else if (isEnd && !isOneProcess) this.#holdWhile(this.#emitRestAndEnd(item));
    else {
      const isAppended = append(item) !== undefined;
      if (what?.$case === "channel_ended") this.#current?.torn.add(what.value.channel);
      if (what?.$case === "frame") this.#hear(what.value, isAppended);
    }
  }

  #hear({ channel, bytes }: { readonly channel: string; readonly bytes: Uint8Array }, isAppended: boolean): void {
    if (channel === "logs" || this.#current === undefined) return;
    const timestamp = timestampOf(bytes);
    if (timestamp === undefined) return;
    const { first, torn } = this.#current;
    if (first === undefined || compareTimestamps(timestamp, first) < 0) this.#current.first = timestamp;
    if (isAppended) this.#received.add(channel, timestamp);
    else torn.add(channel);
  }

  /** Items that arrive until then follow afterwards. */
  #holdWhile(reading: Promise<void>): void {
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

  /** Emits the processes that ended before a connection was made, and then the next dial. */
  async #emitUnreceivedBefore(dialled: TapItem): Promise<void> {
    await this.#emitUnreceived();
    this.#options.append(dialled);
  }

  /** Emits the rest of a process, and then its end. */
  async #emitRestAndEnd(closed: TapItem): Promise<void> {
    const { ended, append } = this.#options;
    const connection = this.#current;
    const until = performance.now() + writtenMs;
    const over = AbortSignal.any([ended, this.#leaving.signal]);
    const others = new FiledProcesses(append);
    await this.#complete(connection, others);
    while (this.#received.size > 0 && !others.isFull && performance.now() < until && !over.aborted) {
      await delay(checkIntervalMs, over);
      await this.#complete(connection, others);
    }
    this.#received.clear();
    append(closed);
    const isMore = others.isFull;
    await this.#emitAll(others);
    if (isMore) await this.#emitUnreceived();
  }

  async #emitUnreceived(): Promise<void> {
    const others = new FiledProcesses(this.#options.append);
    await this.#complete(undefined, others);
    await this.#emitAll(others);
  }

  /** Adds the rest of a process, and gives the messages of other processes to `others`. */
  async #complete(connection: TappedConnection | undefined, others: FiledProcesses, ended?: ProcessEnd): Promise<void> {
    const { tail, isOneProcess, append } = this.#options;
    const { signal } = this.#leaving;
    let alone: FiledConnection | undefined;
    const since = isOneProcess ? this.#options.since : connection?.first;
    const isReceived: IsReceived = (channel, timestamp) => this.#received.take(channel, timestamp);
    try {
      const isKnownToBeOwn = isOneProcess || since !== undefined;
      const own = isKnownToBeOwn ? await tail.ownParts({ received: this.#received, since }, signal) : undefined;
      for await (const frame of tail.added(isReceived, signal, own)) {
        const isOwn = frame.isOwn && (since === undefined || compareTimestamps(frame.timestamp, since) >= 0);
        if (isOwn && connection !== undefined) this.#add(connection, frame);
        else if (isOwn) {
          alone ??= new (await import("./filed-connection.ts")).FiledConnection(append);
          alone.frame(frame);
        } else if (!isOneProcess) others.add(frame);
        if (!others.isFull) continue;
        // Other processes follow after the end of the connected one.
        if (connection !== undefined) return;
        await others.emit(signal, { isMoreToCome: true });
      }
    } catch {
      // The reading may have stopped early; a later reading of the file takes everything.
      this.#isWhole = false;
      return;
    }
    if (connection !== undefined && !signal.aborted && this.#received.size === 0) this.#fill(connection);
    if (!signal.aborted) alone?.end(ended);
  }

  #add({ id }: TappedConnection, { channel, bytes }: ImportedFrame): void {
    const value = { channel, bytes: Buffer.from(bytes), more: false };
    this.#options.append({ connection: id, at: this.#now(), what: { $case: "frame", value } });
  }

  /** The file has every message of the streams, so it is complete, except for a channel that this version does not write. */
  #fill({ id, torn, lines }: TappedConnection): void {
    const { tail, append } = this.#options;
    for (const channel of ["v1", "v2"] as const) {
      if (!torn.delete(channel) || tail.lines[channel] === lines[channel]) continue;
      append({ connection: id, at: this.#now(), what: { $case: "channel_filled", value: { channel } } });
    }
  }

  /** When the signal aborts, the rest stays in the file. */
  async #emitAll(others: FiledProcesses): Promise<void> {
    try {
      await others.emit(this.#leaving.signal);
    } catch {
      this.#isWhole = false;
    }
  }
}
