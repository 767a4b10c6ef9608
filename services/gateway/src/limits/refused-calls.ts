import type { CallerKind } from "@tapedeck/shared/audit/caller-kind";
import type { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Logger } from "@tapedeck/shared/service/logger";
import { startTimer, type Timer } from "@tapedeck/shared/sync/timers";
import { type Audit, severalCallers } from "../audit/audit-log.ts";
import { addressOf } from "./address.ts";

/** A control call that the gateway itself refused, or a sign-in. It is in no event log, so it goes into the audit log. */
export type RefusedCall = {
  readonly who: string;
  readonly kind: CallerKind;
  readonly workspace: string;
  /** The caller's token, if it has one. */
  readonly by?: string;
  /** Empty for what concerns no source. */
  readonly source: string;
  /** The called method, or the way of the sign-in. */
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

const defaultBounds: RefusedCallsBounds = { perCaller: 60, all: 600, windowMs: 60_000, textLength: 200 };

const kinds = {
  control: { audit: "control refused", action: "control.refused", plural: "control calls" },
  "sign-in": { audit: "sign-in refused", action: "sign-in.refused", plural: "sign-ins" },
} as const;

export type RefusedCallsOptions = {
  /** Default: control. */
  readonly kind?: keyof typeof kinds;
  readonly bounds?: RefusedCallsBounds | undefined;
  /** Default: this process's log alone. */
  readonly audit?: Audit;
};

/**
 * Writes what was refused into the audit log and this process's log, with a bound so that no caller can fill the disk or hide the calls of
 * others behind lines of its own. Each caller has a number of lines a minute; one line counts the rest when the minute ends.
 */
export class RefusedCalls {
  readonly #logger: Logger;
  readonly #bounds: RefusedCallsBounds;
  readonly #kind: (typeof kinds)[keyof typeof kinds];
  readonly #record: Audit;
  readonly #written = new Map<string, number>();
  #all = 0;
  #omitted = 0;
  #window: Timer | undefined;

  constructor(
    logger: Logger,
    { kind = "control", bounds = defaultBounds, audit = () => {} }: RefusedCallsOptions = {},
  ) {
    this.#logger = logger;
    this.#bounds = bounds;
    this.#kind = kinds[kind];
    this.#record = audit;
  }

  write({ error, who, kind, workspace, by, source, method }: RefusedCall): void {
    this.#window ??= startTimer(() => this.#endWindow(), this.#bounds.windowMs).unref();
    const caller = `${workspace} ${kind} ${kind === "address" ? addressOf(who) : (by ?? who)}`;
    const count = this.#written.get(caller) ?? 0;
    if (count >= this.#bounds.perCaller || this.#all >= this.#bounds.all) {
      this.#omitted += 1;
      return;
    }
    this.#written.set(caller, count + 1);
    this.#all += 1;
    const texts = { who: this.#cut(who), kind, workspace, source: this.#cut(source), method: this.#cut(method) };
    const { audit, action } = this.#kind;
    this.#logger.warn({ audit, ...texts, code: error.code }, this.#cut(error.message));
    const about = { method, ...(source !== "" && { source }), code: error.code, reason: error.message };
    this.#record({ action, who, kind, workspace, ...(by !== undefined && { by }), about });
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
    const { audit, action, plural } = this.#kind;
    this.#logger.warn({ audit, leftOut: omitted }, `${omitted} more ${plural} were refused`);
    this.#record({ action, ...severalCallers, workspace: "-", about: { leftOut: omitted } });
  }
}
