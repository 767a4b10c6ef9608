/** When frames were seen: by source and channel, and the frame's number in it. Sent between processes. */
export type Sightings = {
  readonly keys: readonly string[];
  readonly key: Uint32Array;
  readonly frame: Uint32Array;
  /** In ms on the machine's monotonic clock, which all processes share. */
  readonly at: Float64Array;
};

export const now = (): number => Number(process.hrtime.bigint()) / 1_000_000;

/** Notes sightings without an object for each. */
export class SightingLog {
  readonly #keys = new Map<string, number>();
  #key = new Uint32Array(1_024);
  #frame = new Uint32Array(1_024);
  #at = new Float64Array(1_024);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  see(key: string, frame: number, at: number): void {
    if (this.#count === this.#at.length) this.#grow();
    const index = this.#keys.get(key) ?? this.#keys.size;
    this.#keys.set(key, index);
    this.#key[this.#count] = index;
    this.#frame[this.#count] = frame;
    this.#at[this.#count] = at;
    this.#count++;
  }

  take(): Sightings {
    const count = this.#count;
    this.#count = 0;
    return {
      keys: [...this.#keys.keys()],
      key: this.#key.slice(0, count),
      frame: this.#frame.slice(0, count),
      at: this.#at.slice(0, count),
    };
  }

  #grow(): void {
    const double = <T extends Uint32Array | Float64Array>(old: T, bigger: T): T => {
      bigger.set(old);
      return bigger;
    };
    const size = this.#at.length * 2;
    this.#key = double(this.#key, new Uint32Array(size));
    this.#frame = double(this.#frame, new Uint32Array(size));
    this.#at = double(this.#at, new Float64Array(size));
  }
}

/** How long each arrival came after the same frame was emitted, ascending. Arrivals of other frames do not count. */
export function latencies(emitted: Sightings, arrived: Sightings): Float64Array {
  const sent = new Map<string, number>();
  each(emitted, (name, at) => sent.set(name, at));
  const took: number[] = [];
  each(arrived, (name, at) => {
    const from = sent.get(name);
    if (from !== undefined) took.push(at - from);
  });
  return Float64Array.from(took).sort();
}

function each({ keys, key, frame, at }: Sightings, take: (name: string, at: number) => void): void {
  for (let index = 0; index < at.length; index++) {
    take(`${keys[key[index] ?? 0]} ${frame[index]}`, at[index] ?? 0);
  }
}
