import { setImmediate } from "node:timers/promises";
import type { SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { channels } from "@tapedeck/shared/skaffold/methods";
import { delay } from "@tapedeck/shared/sync/delay";

/** An event of a recording, at a time in ms on the recording's clock. */
export type Cue = {
  readonly channel: SkaffoldChannel;
  readonly at: number;
  readonly happen: () => Promise<void>;
  /** The time before it is a pause that may be cut short. */
  readonly afterPause?: boolean;
};

export type Counts = Readonly<Record<SkaffoldChannel, number>>;

/** Recorded time per real time, or as fast as it goes. */
export type Speed = number | "max";

export type PlaybackOptions = {
  readonly cues: Readonly<Record<SkaffoldChannel, readonly Cue[]>>;
  readonly speed: Speed;
  /** Ends the playback. */
  readonly end: AbortSignal;
  /** Adds cues when all are played, or leaves the lists as they are. */
  readonly refill?: () => void;
};

/** After this many cues the playback yields to the event loop, even at the highest speed. */
const cuesPerTurn = 64;

/** Plays the cues of a recording in recorded order. */
export class Playback {
  readonly #options: PlaybackOptions;
  readonly #played = { v1: 0, v2: 0, logs: 0 };
  #speed: Speed;
  /** The recorded time that has been reached. */
  #clock: number | undefined;
  #paused: PromiseWithResolvers<void> | undefined;
  #lastRun: Promise<void> = Promise.resolve();
  #breakBetweenRounds: AbortController | undefined;

  constructor(options: PlaybackOptions) {
    this.#options = options;
    this.#speed = options.speed;
  }

  get played(): Counts {
    return this.#played;
  }

  /** The time up to which everything has happened; the next cue comes later. Infinity at the end. */
  get now(): number {
    return this.#next({})?.at ?? Number.POSITIVE_INFINITY;
  }

  /** Plays what is left. Resolves when that is done or the playback has ended; never, if it hangs. */
  play(): Promise<void> {
    return this.playUntil({ v1: Number.POSITIVE_INFINITY });
  }

  /**
   * Plays on until each given channel has had that many messages in all, and stops exactly there. The other channels play
   * along up to the same time.
   */
  playUntil(targets: Partial<Counts>): Promise<void> {
    this.#lastRun = this.#lastRun.then(() => this.#run(targets));
    return this.#lastRun;
  }

  pause(): void {
    this.#paused ??= Promise.withResolvers();
  }

  resume(): void {
    this.#paused?.resolve();
    this.#paused = undefined;
  }

  setSpeed(speed: Speed): void {
    this.#speed = speed;
  }

  /** Ends a pause between two rounds of a loop. */
  skipBreak(): void {
    this.#breakBetweenRounds?.abort();
  }

  async #run(targets: Partial<Counts>): Promise<void> {
    const { end, refill } = this.#options;
    for (let count = 1; !end.aborted && !this.#isReached(targets); count++) {
      if (this.#next({}) === undefined) refill?.();
      const cue = this.#next(targets);
      if (cue === undefined) return;
      await this.#waitFor(cue);
      if (end.aborted) return;
      await cue.happen();
      this.#played[cue.channel]++;
      if (count % cuesPerTurn === 0) await setImmediate();
    }
  }

  #next(targets: Partial<Counts>): Cue | undefined {
    const upcoming = channels.flatMap((channel) => {
      const isReached = this.#played[channel] >= (targets[channel] ?? Number.POSITIVE_INFINITY);
      return isReached ? [] : (this.#options.cues[channel][this.#played[channel]] ?? []);
    });
    return upcoming.reduce<Cue | undefined>((a, b) => (a !== undefined && a.at <= b.at ? a : b), undefined);
  }

  #isReached(targets: Partial<Counts>): boolean {
    return channels.every((channel) => this.#played[channel] >= (targets[channel] ?? 0));
  }

  async #waitFor(cue: Cue): Promise<void> {
    const { end } = this.#options;
    if (this.#speed !== "max" && this.#clock !== undefined && cue.at > this.#clock) {
      const between = cue.afterPause ? new AbortController() : undefined;
      this.#breakBetweenRounds = between;
      const signal = between === undefined ? end : AbortSignal.any([end, between.signal]);
      await delay((cue.at - this.#clock) / this.#speed, signal);
      this.#breakBetweenRounds = undefined;
    }
    this.#clock = Math.max(this.#clock ?? cue.at, cue.at);
    await this.#paused?.promise;
  }
}
