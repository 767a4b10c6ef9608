import { setImmediate, setTimeout } from "node:timers/promises";
import { type Channel, channels } from "@tapedeck/shared/skaffold/methods";

/** Something of a recording that happens at a moment (ms, on the recording's clock). */
export type Cue = {
  readonly channel: Channel;
  readonly at: number;
  readonly happen: () => Promise<void>;
  /** What comes before is a pause that may be cut short. */
  readonly afterPause?: boolean;
};

export type Counts = Readonly<Record<Channel, number>>;

/** Recorded time per real time, or as fast as it goes. */
export type Speed = number | "max";

export type Playback = {
  /** Plays what is left, in recorded order. Resolves when that is done or playback has ended; never, if it hangs. */
  readonly play: () => Promise<void>;
  /**
   * Plays on until each channel given has had that many messages in all, and stops exactly there. Channels that are
   * not given play along up to the same moment.
   */
  readonly playUntil: (counts: Partial<Counts>) => Promise<void>;
  readonly played: Counts;
  /** The moment up to which everything has happened; the next cue comes later. Infinity at the end. */
  readonly now: () => number;
  readonly pause: () => void;
  readonly resume: () => void;
  readonly setSpeed: (speed: Speed) => void;
  /** Ends a pause between two rounds of a loop. */
  readonly hurry: () => void;
};

/** Playing yields to others after this many cues, so that "as fast as it goes" starves nobody. */
const cuesPerTurn = 64;

/** `refill` is asked for more cues when all are played; it adds them to the lists, or leaves them as they are. */
export function playback(
  cues: Readonly<Record<Channel, readonly Cue[]>>,
  first: Speed,
  end: AbortSignal,
  refill: () => void = () => {},
): Playback {
  const played = { v1: 0, v2: 0, logs: 0 };
  let speed = first;
  let clock: number | undefined;
  let paused: PromiseWithResolvers<void> | undefined;
  let turn: Promise<void> = Promise.resolve();
  let pausing: AbortController | undefined;

  function next(targets: Partial<Counts>): Cue | undefined {
    const upcoming = channels.flatMap((channel) => {
      const reached = played[channel] >= (targets[channel] ?? Number.POSITIVE_INFINITY);
      return reached ? [] : (cues[channel][played[channel]] ?? []);
    });
    return upcoming.reduce<Cue | undefined>((a, b) => (a !== undefined && a.at <= b.at ? a : b), undefined);
  }

  function isReached(targets: Partial<Counts>): boolean {
    return channels.every((channel) => played[channel] >= (targets[channel] ?? 0));
  }

  async function waitFor(cue: Cue): Promise<void> {
    if (speed !== "max" && clock !== undefined && cue.at > clock) {
      pausing = cue.afterPause ? new AbortController() : undefined;
      await pass((cue.at - clock) / speed, pausing === undefined ? end : AbortSignal.any([end, pausing.signal]));
      pausing = undefined;
    }
    clock = Math.max(clock ?? cue.at, cue.at);
    await paused?.promise;
  }

  async function run(targets: Partial<Counts>): Promise<void> {
    for (let count = 1; !end.aborted && !isReached(targets); count++) {
      if (next({}) === undefined) refill();
      const cue = next(targets);
      if (cue === undefined) return;
      await waitFor(cue);
      if (end.aborted) return;
      await cue.happen();
      played[cue.channel]++;
      if (count % cuesPerTurn === 0) await setImmediate();
    }
  }

  function playUntil(targets: Partial<Counts>): Promise<void> {
    turn = turn.then(() => run(targets));
    return turn;
  }

  return {
    played,
    playUntil,
    play: () => playUntil({ v1: Number.POSITIVE_INFINITY }),
    now: () => next({})?.at ?? Number.POSITIVE_INFINITY,
    pause: () => {
      paused ??= Promise.withResolvers();
    },
    resume: () => {
      paused?.resolve();
      paused = undefined;
    },
    hurry: () => pausing?.abort(),
    setSpeed: (value) => {
      speed = value;
    },
  };
}

/** Resolves early, and without an error, when it is over. */
async function pass(ms: number, end: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal: end }).catch(() => {});
}
