import type { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Logger } from "@tapedeck/shared/service/logger";
import { addressOf } from "./address.ts";

/** A control call that the gateway itself refused. It is in no event log, so it goes into this process's log. */
export type Refusal = {
  readonly who: string;
  readonly workspace: string;
  readonly source: string;
  readonly method: string;
  readonly error: TapedeckError;
};

export type RefusedCallsBounds = {
  /** Lines of one caller, and of all of them, in one window. */
  readonly perCaller: number;
  readonly all: number;
  readonly windowMs: number;
  /** Characters of each text that a caller may have written. */
  readonly textLength: number;
};

const usual: RefusedCallsBounds = { perCaller: 60, all: 600, windowMs: 60_000, textLength: 200 };

/**
 * Writes refused control calls into the audit log, with a bound so that no caller can fill the disk or hide the calls of
 * others behind lines of its own. Each caller has a number of lines a minute; one line counts the rest when the minute ends.
 */
export class RefusedCalls {
  readonly #logger: Logger;
  readonly #bounds: RefusedCallsBounds;
  readonly #written = new Map<string, number>();
  #all = 0;
  #omitted = 0;
  #window: NodeJS.Timeout | undefined;

  constructor(logger: Logger, bounds: RefusedCallsBounds = usual) {
    this.#logger = logger;
    this.#bounds = bounds;
  }

  write({ error, who, workspace, source, method }: Refusal): void {
    this.#window ??= setTimeout(() => this.#endWindow(), this.#bounds.windowMs).unref();
    const caller = `${workspace} ${addressOf(who)}`;
    const count = this.#written.get(caller) ?? 0;
    if (count >= this.#bounds.perCaller || this.#all >= this.#bounds.all) {
      this.#omitted += 1;
      return;
    }
    this.#written.set(caller, count + 1);
    this.#all += 1;
    const texts = { who: this.#cut(who), workspace, source: this.#cut(source), method: this.#cut(method) };
    this.#logger.warn({ audit: "control refused", ...texts, code: error.code }, this.#cut(error.message));
  }

  #cut(text: string): string {
    const { textLength } = this.#bounds;
    return text.length <= textLength ? text : `${text.slice(0, textLength).replace(/[\uD800-\uDBFF]$/, "")}…`;
  }

  #endWindow(): void {
    const omitted = this.#omitted;
    this.#window = undefined;
    this.#written.clear();
    this.#all = 0;
    this.#omitted = 0;
    if (omitted === 0) return;
    this.#logger.warn({ audit: "control refused", leftOut: omitted }, `${omitted} more control calls were refused`);
  }
}
