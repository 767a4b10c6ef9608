import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { TapItem } from "../../tap.ts";
import type { ImportedFrame } from "./event-log-file.ts";

/** Messages wait in memory until it is known where one process ends and the next begins. */
const maxBytes = 64 * 1024 * 1024;

/**
 * Processes without a connection, from what they have appended to one file, ordered by time. When the messages exceed the
 * memory for them, complete processes are emitted as they come. A single process that exceeds it becomes several
 * connections.
 */
export class FiledProcesses {
  readonly #append: (item: TapItem) => unknown;
  readonly #maxBytes: number;
  #frames: ImportedFrame[] = [];
  #bytes = 0;

  constructor(append: (item: TapItem) => unknown, max: number = maxBytes) {
    this.#append = append;
    this.#maxBytes = max;
  }

  add(frame: ImportedFrame): void {
    this.#frames.push(frame);
    this.#bytes += frame.bytes.byteLength + overheadBytes;
  }

  /** True when messages must be emitted before more are added. */
  get isFull(): boolean {
    return this.#bytes >= this.#maxBytes;
  }

  /**
   * Emits all processes, except the last one if more messages may come, because it may continue. Yields to the event loop.
   * @throws AbortError when the signal aborts, which leaves some processes out
   */
  async emit(signal: AbortSignal, { isMoreToCome = false } = {}): Promise<void> {
    if (this.#frames.length === 0) return;
    const [{ FiledConnection }, { splitProcesses }] = await Promise.all([
      import("./filed-connection.ts"),
      import("./split-processes.ts"),
    ]);
    const yieldIfDue = yieldToEventLoop();
    const processes = await splitProcesses(this.#frames, signal);
    const last = isMoreToCome && processes.length > 1 ? processes.at(-1) : undefined;
    this.#frames = [];
    this.#bytes = 0;
    for (const frame of last?.frames ?? []) this.add(frame);
    for (const { frames } of processes.slice(0, last === undefined ? undefined : -1)) {
      const connection = new FiledConnection(this.#append);
      for (const frame of frames) {
        await yieldIfDue();
        signal.throwIfAborted();
        connection.frame(frame);
      }
      connection.end();
    }
  }
}

/** The memory that a message takes beside its bytes. */
const overheadBytes = 200;
