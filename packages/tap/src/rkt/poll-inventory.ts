import { status } from "@grpc/grpc-js";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import type { PolledConnection } from "../polling/connection.ts";
import { LateNotice } from "../polling/late-notice.ts";
import type { EmitResult } from "../polling/poll-result.ts";
import { requestSingleRecords } from "../polling/single-records.ts";
import { WholeListInterval } from "../polling/whole-list-interval.ts";
import type { Reply } from "../unary-call.ts";
import type { Doubts } from "./list-doubts.ts";
import type { InventoryMethods } from "./methods.ts";
import { delayMs } from "./pace.ts";
import { SingleItems } from "./single-items.ts";

export type InventoryPollOptions = {
  readonly methods: InventoryMethods;
  readonly connection: Pick<PolledConnection, "signal" | "call">;
  readonly emit: EmitResult;
  readonly doubts: Doubts;
  readonly intervalMs: number;
  /** The share of one of the host's processors that both lists together may cost: 0.02 is 2 %. */
  readonly load: number;
  /** See `Pace`. */
  readonly roundTripMs: number;
  /** For each list, and for all inspections after one list together. */
  readonly timeoutMs: number;
  /** Called after each list, before anything is inspected. */
  readonly onList?: () => void;
};

/** After this many polls without a change the interval applies again. */
const quietPolls = 5;
/** The last answers, which show what a list costs. */
const recentPolls = 5;
/** An abandoned call keeps waiting inside the server, so failing calls must not become many. */
const failedMs = { first: 1_000, longest: 30_000 };

/** Polls the pods or the images, one call after the other, until the connection has ended. */
export class InventoryPoll {
  readonly #options: InventoryPollOptions;
  readonly #afterFailure = backoff(failedMs.first, failedMs.longest);
  readonly #wholeList = new WholeListInterval();
  #lastWhole: Buffer | undefined;
  #unchangedPolls = 0;
  #tookMs: readonly number[] = [];
  readonly #late: LateNotice;
  readonly #singleItems: SingleItems;
  #becameLate = Promise.withResolvers<void>();

  constructor(options: InventoryPollOptions) {
    this.#options = options;
    const { methods, connection, emit, doubts, intervalMs, load } = options;
    this.#singleItems = new SingleItems({ methods, connection, emit, doubts, intervalMs, share: load * methods.share });
    this.#late = new LateNotice(() => {
      if (connection.signal.aborted) return;
      emit({ $case: "late", value: { kind: "" } });
      this.#becameLate.resolve();
    });
  }

  async run(): Promise<void> {
    const { methods, connection, timeoutMs } = this.#options;
    const { signal } = connection;
    this.#expectList(this.#options.intervalMs);
    while (!signal.aborted) {
      const requestedAt = performance.now();
      const listing = connection.call(methods.list, methods.listRequest, timeoutMs);
      await this.#inspectIfLate(listing);
      const reply = await listing;
      if (signal.aborted) break;
      if (reply.code === status.OK) {
        const ms = await this.#takeList(reply.response, requestedAt);
        this.#expectList(ms + (this.#tookMs.at(-1) ?? 0));
        await delay(ms, signal);
      } else {
        await this.#inspectIfLate(delay(this.#takeFailure(reply), signal));
      }
    }
    this.#late.stop();
  }

  #expectList(usualMs: number): void {
    this.#becameLate = Promise.withResolvers();
    this.#singleItems.reset();
    this.#late.answered(usualMs);
  }

  /** Resolves with `over`. Where the list is late before that, what may have changed is inspected meanwhile. */
  async #inspectIfLate(over: Promise<unknown>): Promise<void> {
    await Promise.race([over, this.#becameLate.promise]);
    if (this.#late.isLate) await this.#singleItems.inspectUntil(over);
  }

  #takeFailure({ code, message }: Reply): number {
    this.#options.emit({ $case: "failed", value: { code, message } });
    return this.#afterFailure.next();
  }

  /** Resolves with the delay until the next poll. */
  async #takeList(list: Buffer, requestedAt: number): Promise<number> {
    const { methods, emit, doubts, intervalMs, load, roundTripMs, timeoutMs, onList } = this.#options;
    const answeredAt = performance.now();
    this.#afterFailure.reset();
    // Until all is inspected, and the time of the next list is known.
    this.#expectList(timeoutMs);
    const hasChanged = this.#lastWhole === undefined || !isSameList(methods, this.#lastWhole, list);
    if (this.#wholeList.isDue(hasChanged, answeredAt)) {
      this.#lastWhole = list;
      emit({ $case: "all", value: list });
    } else {
      emit({ $case: "same", value: true });
    }
    const doubtful = hasChanged ? doubts.compare(list) : doubts.unresolved();
    onList?.();
    const inspectMs = await this.#inspect(doubtful);
    this.#unchangedPolls = hasChanged ? 0 : this.#unchangedPolls + 1;
    this.#tookMs = [...this.#tookMs, answeredAt - requestedAt].slice(-recentPolls);
    return delayMs({
      tookMs: this.#tookMs,
      inspectMs,
      roundTripMs,
      intervalMs,
      share: load * methods.share,
      isChanging: this.#unchangedPolls < quietPolls,
    });
  }

  /** Resolves with the time that each answer took, in ms. */
  async #inspect(ids: readonly string[]): Promise<readonly number[]> {
    const { methods, connection, emit, doubts, timeoutMs } = this.#options;
    const requests = { path: methods.inspect, requestFor: methods.inspectRequest };
    const tookMs: number[] = [];
    for await (const record of requestSingleRecords(ids, { ...requests, connection, emit, timeoutMs })) {
      doubts.resolve(record.id, record.reply);
      tookMs.push(record.tookMs);
    }
    return tookMs;
  }
}

/** True for the same entries in any order. Bytes that are not a list equal only themselves. */
export function isSameList({ entries }: Pick<InventoryMethods, "entries">, one: Buffer, other: Buffer): boolean {
  if (one.equals(other)) return true;
  if (one.byteLength !== other.byteLength) return false;
  const [left, right] = [one, other].map((list) =>
    entries(list)
      ?.map(({ bytes }) => bytes)
      .sort(Buffer.compare),
  );
  if (left === undefined || right === undefined || left.length !== right.length) return false;
  return left.every((entry, index) => right[index]?.equals(entry));
}
