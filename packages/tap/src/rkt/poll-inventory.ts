import { status } from "@grpc/grpc-js";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import type { PolledConnection } from "../polling/connection.ts";
import type { EmitResult } from "../polling/poll-result.ts";
import { requestSingleRecords } from "../polling/single-records.ts";
import { WholeListInterval } from "../polling/whole-list-interval.ts";
import type { Reply } from "../unary-call.ts";
import type { Doubts } from "./list-doubts.ts";
import type { InventoryMethods } from "./methods.ts";
import { delayMs } from "./pace.ts";

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

/** Polls the pods or the images, one call after the other, until the connection is over. */
export class InventoryPoll {
  readonly #options: InventoryPollOptions;
  readonly #afterFailure = backoff(failedMs.first, failedMs.longest);
  readonly #wholeList = new WholeListInterval();
  #lastWhole: Buffer | undefined;
  #unchangedPolls = 0;
  #tookMs: readonly number[] = [];

  constructor(options: InventoryPollOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { methods, connection, timeoutMs } = this.#options;
    const { signal } = connection;
    while (!signal.aborted) {
      const requestedAt = performance.now();
      const reply = await connection.call(methods.list, methods.listRequest, timeoutMs);
      if (signal.aborted) return;
      const isListed = reply.code === status.OK;
      const ms = isListed ? await this.#takeList(reply.response, requestedAt) : this.#takeFailure(reply);
      await delay(ms, signal);
    }
  }

  #takeFailure({ code, message }: Reply): number {
    this.#options.emit({ $case: "failed", value: { code, message } });
    return this.#afterFailure.next();
  }

  /** Resolves with the delay until the next poll. */
  async #takeList(list: Buffer, requestedAt: number): Promise<number> {
    const { methods, emit, doubts, intervalMs, load, roundTripMs, onList } = this.#options;
    const answeredAt = performance.now();
    this.#afterFailure.reset();
    const hasChanged = this.#lastWhole === undefined || !isSameList(methods, this.#lastWhole, list);
    if (this.#wholeList.isDue(hasChanged, answeredAt)) {
      this.#lastWhole = list;
      emit({ $case: "all", value: list });
    } else {
      emit({ $case: "same", value: true });
    }
    const doubtful = hasChanged ? doubts.compare(list) : doubts.unresolved();
    onList?.();
    const askedMs = await this.#inspect(doubtful);
    this.#unchangedPolls = hasChanged ? 0 : this.#unchangedPolls + 1;
    this.#tookMs = [...this.#tookMs, answeredAt - requestedAt].slice(-recentPolls);
    return delayMs({
      ...{ tookMs: this.#tookMs, askedMs, roundTripMs, intervalMs },
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
