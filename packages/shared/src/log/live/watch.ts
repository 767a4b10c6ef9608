/** More entries than this do not wait for one follower: it looks for them itself when it has taken these. */
const maxQueued = 1_024;

/**
 * One follower's place at the tail. While it is armed, the tail puts the indexes of the entries that match into its queue;
 * entries that do not match cost it nothing.
 */
export class Watch {
  /** Empty: everything matches. */
  readonly subjects: readonly string[];
  readonly isPatient: boolean;
  readonly #schedule: (goOn: () => void) => void;
  #queue: number[] = [];
  #first = 0;
  #newest = -1;
  #isArmed = false;
  #goOn: (() => void) | undefined;

  /** `schedule` determines when a woken follower continues. */
  constructor(subjects: readonly string[], schedule: (goOn: () => void) => void, isPatient = false) {
    this.subjects = subjects;
    this.isPatient = isPatient;
    this.#schedule = schedule;
  }

  /** From now on everything that matches is put into the queue. */
  get isArmed(): boolean {
    return this.#isArmed;
  }

  arm(): void {
    this.#queue = [];
    this.#first = 0;
    this.#isArmed = true;
  }

  /** Drops the queue: the follower continues reading from its own position. */
  disarm(): void {
    this.arm();
    this.#isArmed = false;
  }

  /** An entry that matches. It may be offered twice, for two of the subjects. */
  offer(index: number): void {
    if (!this.#isArmed || index === this.#newest) return;
    if (this.#queue.length - this.#first >= maxQueued) this.#isArmed = false;
    else this.#queue.push(index);
    this.#newest = index;
    this.wake();
  }

  /** While armed: all that matched was taken. */
  get isEmpty(): boolean {
    return this.#first === this.#queue.length;
  }

  /** The next entry in the queue. Undefined: while armed, all that matched was taken. */
  next(): number | undefined {
    const index = this.#queue[this.#first];
    if (index === undefined) {
      if (this.#first > 0) {
        this.#queue = [];
        this.#first = 0;
      }
      return undefined;
    }
    this.#first++;
    // One that is never quite at the end empties its queue never.
    if (this.#first === maxQueued) {
      this.#queue.splice(0, this.#first);
      this.#first = 0;
    }
    return index;
  }

  /**
   * Resolves when it is woken. One follower waits at a time. This is not a `Notifier`, because `schedule` must get the
   * wake-up of a follower that waits, and of no other: each takes a turn there.
   */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#goOn = resolve;
    });
  }

  /** Wakes the follower, if it waits. */
  wake(): void {
    const goOn = this.#goOn;
    this.#goOn = undefined;
    if (goOn !== undefined) this.#schedule(goOn);
  }
}
