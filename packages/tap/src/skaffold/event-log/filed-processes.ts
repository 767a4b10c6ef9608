import { breather } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { TapItem } from "../../tap.ts";
import type { ImportedFrame } from "./event-log-file.ts";
import { FiledConnection } from "./filed-connection.ts";
import { splitProcesses } from "./split-processes.ts";

/** Of messages that wait until it is known where one process ends and the next begins. */
const mostBytes = 64 * 1024 * 1024;

/**
 * Processes that nobody has heard, from what they have added to one file, by time. Of a row that is larger than memory for
 * it, whole processes are told as they come; a single one that is larger becomes several connections.
 */
export class FiledProcesses {
  readonly #append: (item: TapItem) => unknown;
  readonly #mostBytes: number;
  #frames: ImportedFrame[] = [];
  #bytes = 0;

  constructor(append: (item: TapItem) => unknown, most: number = mostBytes) {
    this.#append = append;
    this.#mostBytes = most;
  }

  add(frame: ImportedFrame): void {
    this.#frames.push(frame);
    this.#bytes += frame.bytes.byteLength + overheadBytes;
  }

  /** More is not to be added before some has been told. */
  get isFull(): boolean {
    return this.#bytes >= this.#mostBytes;
  }

  /**
   * Tells all; where more is to come, not the last one, which may go on in it. Others have their turns meanwhile.
   * @throws AbortError with the signal, which leaves some untold
   */
  async tell(signal: AbortSignal, { isMoreToCome = false } = {}): Promise<void> {
    const breathe = breather();
    const processes = await splitProcesses(this.#frames, signal);
    const last = isMoreToCome && processes.length > 1 ? processes.at(-1) : undefined;
    this.#frames = [];
    this.#bytes = 0;
    for (const frame of last?.frames ?? []) this.add(frame);
    for (const { frames } of processes.slice(0, last === undefined ? undefined : -1)) {
      const connection = new FiledConnection(this.#append);
      for (const frame of frames) {
        await breathe();
        signal.throwIfAborted();
        connection.frame(frame);
      }
      connection.end();
    }
  }
}

/** Of a message in memory, beside its bytes. */
const overheadBytes = 200;
