import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments, msBetween } from "@tapedeck/shared/time/moment";

/**
 * How long and how much is held back; then it goes on in sorted pieces. Frames are counted too: an empty one has no
 * bytes, but takes memory like any other.
 */
export const holdBackLimits = {
  silenceMs: 200,
  pieceMs: 5_000,
  pieceBytes: 64 * 1024 * 1024,
  pieceFrames: 100_000,
} as const;

export type Holdable = {
  /** The upstream's own time; undefined when it can't be read. */
  readonly moment: Moment | undefined;
  readonly size: number;
};

/**
 * Puts in order what a channel repeats after connecting: a server may send live messages between those that it
 * repeats. Holds messages until none has come for a while, gives them sorted by (own time, arrival), and from then on
 * gives each as it comes. Time is what the caller says it is, so that the same messages at the same times always come
 * out the same.
 */
export type HoldBack<T extends Holdable> = {
  /** Takes a message; gives those that are due, in order. */
  take(message: T, at: Moment): readonly T[];
  /** Time has passed. */
  advance(at: Moment): readonly T[];
  /** Nothing more is waited for: gives what is held; from now on each message as it comes. */
  release(): readonly T[];
  /** Silent: nothing has come yet. */
  readonly state: "silent" | "holding" | "live";
};

export function holdBack<T extends Holdable>({ live = false, ...given }: HoldBackOptions = {}): HoldBack<T> {
  const limits = { ...holdBackLimits, ...given };
  let state: HoldBack<T>["state"] = live ? "live" : "silent";
  let held: T[] = [];
  let bytes = 0;
  let pieceStart: Moment | undefined;
  let latest: Moment | undefined;

  const piece = (): readonly T[] => {
    const sorted = inOrder(held);
    held = [];
    bytes = 0;
    pieceStart = undefined;
    return sorted;
  };

  const advance = (at: Moment): readonly T[] => {
    if (state !== "holding" || latest === undefined || msBetween(latest, at) < limits.silenceMs) return [];
    state = "live";
    return piece();
  };

  return {
    take(message, at) {
      const due = advance(at);
      if (state === "live") return [...due, message];
      state = "holding";
      held.push(message);
      bytes += message.size;
      latest = at;
      pieceStart ??= at;
      const isLarge = bytes >= limits.pieceBytes || held.length >= limits.pieceFrames;
      return isLarge || msBetween(pieceStart, at) >= limits.pieceMs ? piece() : [];
    },
    advance,
    release() {
      state = "live";
      return piece();
    },
    get state() {
      return state;
    },
  };
}

type HoldBackOptions = Partial<{ [K in keyof typeof holdBackLimits]: number }> & {
  /** The channel is past its repeat already. */
  readonly live?: boolean;
};

/** By own time; a message without one stays behind the one that it came after. */
function inOrder<T extends Holdable>(arrived: readonly T[]): readonly T[] {
  let previous: Moment | undefined;
  const timed = arrived.map((message) => {
    previous = message.moment ?? previous;
    return { message, moment: previous };
  });
  // The sort is stable, so equal times stay in the order of arrival.
  timed.sort((a, b) =>
    a.moment === undefined || b.moment === undefined
      ? Number(a.moment !== undefined) - Number(b.moment !== undefined)
      : compareMoments(a.moment, b.moment),
  );
  return timed.map(({ message }) => message);
}
