import type { LogReader } from "@tapedeck/shared/log/log";
import type { Position } from "@tapedeck/shared/log/position";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";

/** The leader answers within a few ms. */
const maxMs = 50;
/** A log that was written to a moment ago mostly is again soon, and a leader that was silent is still. */
const againMs = 100;

/** Checks whether a position is still the end of a log. */
export class LogEnd {
  readonly #log: () => Pick<LogReader, "epoch" | "bounds">;
  #checkedAgainAt = 0;

  /** `log` may throw while it is away. */
  constructor(log: () => Pick<LogReader, "epoch" | "bounds">) {
    this.#log = log;
  }

  /**
   * Asks the log's leader, because another server or process may lag behind it. False also if it does not answer at once,
   * and for a moment after a check that failed: what is written to, or away, is not checked at each request.
   */
  async isAt({ epoch, offset }: Position): Promise<boolean> {
    if (performance.now() < this.#checkedAgainAt) return false;
    const end = await this.#end();
    const isAt = end?.epoch === epoch && end.offset === offset;
    if (!isAt) this.#checkedAgainAt = performance.now() + againMs;
    return isAt;
  }

  /** Undefined: it is not known in time. */
  async #end(): Promise<Position | undefined> {
    const late = Promise.withResolvers<undefined>();
    const timer = startTimer(() => late.resolve(undefined), maxMs);
    try {
      const log = this.#log();
      const bounds = await Promise.race([log.bounds(), late.promise]);
      return bounds && { epoch: log.epoch, offset: bounds.lastOffset };
    } catch {
      return undefined;
    } finally {
      stopTimer(timer);
    }
  }
}
