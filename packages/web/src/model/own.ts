/** The rights of a visitor's token, as far as they say whose recordings it sees. */
export type Sight = {
  /** Other developers are hidden from it: it sees its own recordings, and sums of the team. */
  readonly seesOnlyOwn?: true;
  readonly developer?: string;
};

/** What stands where nothing is recorded that the visitor sees, and why others may see something. */
export function nothingRecorded({ seesOnlyOwn, developer }: Sight = {}): {
  readonly title: string;
  readonly reason?: string;
} {
  if (seesOnlyOwn === undefined) return { title: "Nothing is recorded yet" };
  if (developer === undefined) {
    return {
      title: "You see nobody's recordings",
      reason: "Developers are hidden from each other here, and your token names no developer.",
    };
  }
  return {
    title: `Nothing of ${developer} is recorded yet`,
    reason: `Developers are hidden from each other here, and your token sees those of ${developer}.`,
  };
}
