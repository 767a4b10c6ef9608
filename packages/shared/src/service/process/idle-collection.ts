import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { startInterval, stopTimer, type Timer } from "../../sync/timers.ts";

/** How often it is looked whether the process is at rest. */
const defaultWindowMs = 30_000;

/** A process that uses less of a core is at rest. */
const restShare = 0.02;

/** With less than this beyond what the last collection left, another one would give next to nothing back. */
const worthBytes = 16 << 20;

/**
 * Collects garbage once the process has come to rest. V8 collects while a program allocates: what the last replay or the last
 * million events have left would stay, three times what is in use. It holds the event loop for as long as a collection of
 * what is in use takes, while nothing else happens.
 */
export class IdleCollection implements Disposable {
  readonly #timer: Timer;
  readonly #collect = garbageCollection();
  #processorTime = process.cpuUsage();
  #leftBytes = 0;

  constructor(windowMs = defaultWindowMs) {
    this.#timer = startInterval(() => this.#look(windowMs), windowMs).unref();
  }

  [Symbol.dispose](): void {
    stopTimer(this.#timer);
  }

  #look(windowMs: number): void {
    const { user, system } = process.cpuUsage(this.#processorTime);
    this.#processorTime = process.cpuUsage();
    const isAtRest = (user + system) / 1_000 < windowMs * restShare;
    if (!isAtRest || heldBytes() - this.#leftBytes < worthBytes) return;
    this.#collect();
    this.#leftBytes = heldBytes();
  }
}

/** What V8 has from the system, used or not, and what its objects hold outside of its heap. */
function heldBytes(): number {
  const { total_heap_size, external_memory } = getHeapStatistics();
  return total_heap_size + external_memory;
}

/** Node offers it only to programs that are started with a flag, which would be part of every way to start a service. */
function garbageCollection(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}
