/** How long one sees a delay that is over. */
const windowMs = 1_000;

/** How long the log takes for what is recorded: the longest time of the last one or two seconds, or of what it has not taken yet. */
export class RecordingDelays {
  readonly #now: () => number;
  /** When each publish began whose end is not known. */
  readonly #underWay = new Set<{ readonly at: number }>();
  #window = 0;
  #longest = 0;
  #longestBefore = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** 0 when nothing is recorded. */
  get currentMs(): number {
    this.#turn();
    const now = this.#now();
    let longest = Math.max(this.#longest, this.#longestBefore);
    for (const { at } of this.#underWay) longest = Math.max(longest, now - at);
    return longest;
  }

  /** Something is published. The answer is called once, at its end, however it ends. */
  began(): () => void {
    const publish = { at: this.#now() };
    this.#underWay.add(publish);
    return () => {
      this.#underWay.delete(publish);
      this.#turn();
      this.#longest = Math.max(this.#longest, this.#now() - publish.at);
    };
  }

  #turn(): void {
    const window = Math.floor(this.#now() / windowMs);
    if (window === this.#window) return;
    this.#longestBefore = window === this.#window + 1 ? this.#longest : 0;
    this.#longest = 0;
    this.#window = window;
  }
}

/** The delays of what this process records. */
export const recordingDelays = new RecordingDelays();
