import { TapedeckError } from "@tapedeck/shared/errors/errors";

/** How many of each task may run at once. */
const maxRunning = { erase: 4, rebuild: 1, backUp: 1, removeWorkspace: 4 } as const;

export type TaskName = keyof typeof maxRunning;

/** The places of tasks that only few callers may have at a time. */
export class Tasks {
  readonly #running = { erase: 0, rebuild: 0, backUp: 0, removeWorkspace: 0 };

  /**
   * Takes one of the places, before anything of the task is done. The answer gives it back, once.
   * @throws TapedeckError limit_exceeded
   */
  place(task: TaskName, signal: AbortSignal): () => void {
    if (this.#running[task] >= maxRunning[task]) {
      throw new TapedeckError("limit_exceeded", "this is already running: wait for its end", {}, { retryAfter: 10 });
    }
    this.#running[task]++;
    let isOver = false;
    const leave = () => {
      signal.removeEventListener("abort", leave);
      if (!isOver) this.#running[task]--;
      isOver = true;
    };
    // A caller that left may never read what was started.
    signal.addEventListener("abort", leave, { once: true });
    return leave;
  }

  /** @throws TapedeckError limit_exceeded */
  begin<T>(task: TaskName, items: AsyncIterable<T>, signal: AbortSignal): AsyncIterable<T> {
    return inPlace(items, this.place(task, signal));
  }
}

/** The same items; the place is free at their end. */
export async function* inPlace<T>(items: AsyncIterable<T>, leave: () => void): AsyncGenerator<T, void> {
  try {
    yield* items;
  } finally {
    leave();
  }
}
