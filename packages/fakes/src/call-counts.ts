export type CallCount = {
  readonly made: number;
  readonly inFlight: number;
  /** The most that were in flight at the same time. */
  readonly maxInFlight: number;
};

type MutableCount = { -readonly [K in keyof CallCount]: CallCount[K] };

/** A demo runs for days, so only the newest calls are kept. */
const maxKept = 1_000;

/** The calls that a fake has got. */
export class CallCounts<Call extends { readonly rpc: string }> {
  readonly #counts = new Map<string, MutableCount>();
  readonly #newest: Call[] = [];

  /** The newest 1,000, in the order of arrival. */
  get newest(): readonly Call[] {
    return this.#newest;
  }

  /** Goes on counting after it was given. */
  readonly of = (rpc: string): CallCount => this.#of(rpc);

  /** Counts a call in. The returned function counts it out, once. */
  begin(call: Call): () => void {
    const count = this.#of(call.rpc);
    count.made++;
    count.inFlight++;
    count.maxInFlight = Math.max(count.maxInFlight, count.inFlight);
    if (this.#newest.push(call) > maxKept) this.#newest.shift();
    let isOver = false;
    return () => {
      if (!isOver) count.inFlight--;
      isOver = true;
    };
  }

  #of(rpc: string): MutableCount {
    const count = this.#counts.get(rpc) ?? { made: 0, inFlight: 0, maxInFlight: 0 };
    this.#counts.set(rpc, count);
    return count;
  }
}
