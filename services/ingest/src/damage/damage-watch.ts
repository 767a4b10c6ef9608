import { endOf, type Offset, offsetOf, type Sequence } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { shortList } from "@tapedeck/shared/output/short-list";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { SourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import type { Fact } from "../normalize/fact.ts";
import { lostFromLog } from "../record/own-facts/gap-facts.ts";
import { countOf, type Hole } from "./holes.ts";
import type { LogCheckResult } from "./log-check.ts";

export type DamageWatchOptions = {
  /** Undefined when it was not this process's turn, or it is stopped. Rejects when the log is unavailable. */
  readonly check: () => Promise<LogCheckResult | undefined>;
  readonly workspace: string;
  readonly epoch: string;
  /** Records a fact of a session, or of the source where that is empty; resolves when it is in the log. */
  readonly recordFact: (source: SourceName, session: string, fact: Fact) => Promise<void>;
  readonly everyMs: number;
  readonly logger: Logger;
  readonly signal: AbortSignal;
};

export type DamageState = {
  /** Events that the log has lost, as far as it was checked. */
  readonly lost: ReadonlyMap<SourceName, number>;
  /** How far the last check of the whole log came, and how long it took. */
  readonly checkedSeq: Sequence;
  readonly seconds: number;
};

/** Delay after a check that failed because the log was away, and after one whose holes could not all be recorded. */
const againMs = { failed: 5_000, unrecorded: 60_000 } as const;

/** Checks all of the log at the start and then regularly, and records each hole once. */
export class DamageWatch implements AsyncDisposable {
  readonly #options: DamageWatchOptions;
  readonly #running: Promise<void>;
  #state: DamageState = { lost: new Map(), checkedSeq: 0, seconds: 0 };

  constructor(options: DamageWatchOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  get state(): DamageState {
    return this.#state;
  }

  /** One sentence for people; undefined when nothing is missing. */
  get warning(): string | undefined {
    const { lost } = this.#state;
    if (lost.size === 0) return undefined;
    const all = [...lost.values()].reduce((sum, count) => sum + count, 0);
    if (all === 0) return undefined;
    const byCount = [...lost].toSorted(([, a], [, b]) => b - a);
    const sources = shortList(byCount.map(([source, count]) => `${source} ${count}`));
    return `the log of the workspace "${this.#options.workspace}" has lost ${all} recorded ${all === 1 ? "event" : "events"}, because its files were damaged (${sources}): session.gap events show where; \`tapedeck restore\` restores a backup`;
  }

  async #run(): Promise<void> {
    const { signal, logger, everyMs } = this.#options;
    while (!signal.aborted) {
      const done = await this.#check().catch((err: unknown) => {
        if (!signal.aborted) logger.warn({ err }, "the log could not be checked; trying again");
        return "failed" as const;
      });
      await delay(done === "all" ? everyMs : Math.min(everyMs, againMs[done]), signal);
    }
  }

  async #check(): Promise<"all" | "unrecorded" | "failed"> {
    const { workspace, check, logger, signal } = this.#options;
    const began = performance.now();
    const checked = await check();
    if (checked === undefined) return "failed";
    const { holes, reported, messages, lastSeq } = checked;
    const lost = new Map(reported);
    for (const hole of holes) lost.set(hole.source, (lost.get(hole.source) ?? 0) + eventsOf(hole));
    const seconds = (performance.now() - began) / 1_000;
    this.#state = { lost, checkedSeq: lastSeq, seconds };
    logger.info({ workspace, messages, lastSeq, seconds, holes: holes.length }, "the log was checked");
    let unrecorded = 0;
    for (const hole of holes) {
      if (signal.aborted) return "failed";
      await this.#record(hole).catch((err: unknown) => {
        unrecorded++;
        if (!signal.aborted)
          logger.warn({ err, source: hole.source }, "a gap could not be recorded; trying again later");
      });
    }
    return unrecorded === 0 ? "all" : "unrecorded";
  }

  async #record(hole: Hole): Promise<void> {
    const { epoch, recordFact, logger } = this.#options;
    const { source, session, after, before, missing } = hole;
    const position = (seq: Sequence | undefined, offsetIn: (seq: Sequence) => Offset) =>
      seq === undefined ? "" : formatPosition({ epoch, offset: offsetIn(seq) });
    const ordinals = missing.map(({ channel, first, last }) => ({ channel, first: BigInt(first), last: BigInt(last) }));
    const events = BigInt(eventsOf(hole));
    const lost = { after: position(after, endOf), before: position(before, offsetOf), ordinals, events };
    logger.error({ source, session, ...lost, ordinals: missing, events: Number(events) }, "the log has lost events");
    await recordFact(source, session, lostFromLog(lost));
  }

  /** The signal has aborted. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running;
  }
}

function eventsOf({ missing, others }: Hole): number {
  return countOf(missing) + others;
}
