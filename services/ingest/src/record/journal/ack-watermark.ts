/** Tells up to which index everything that a tap pushed is in the log, while items finish in any order. */
export type Commits = {
  /** An item came; more than once for a frame in pieces. */
  began(index: bigint): void;
  /** All that it causes is in the log when this many messages are. */
  finished(index: bigint, messages: number): void;
  /** The index up to which everything is in the log when `messages` are. */
  upTo(messages: number): bigint;
};

/** `before`: everything up to this index is in the log or was never made. */
export function commits(before: bigint): Commits {
  // In the order of coming, which is the order of the indexes; these may have holes.
  const open = new Map<bigint, number | undefined>();
  let committed = before;
  return {
    began(index) {
      if (!open.has(index)) open.set(index, undefined);
    },
    finished(index, messages) {
      if (open.has(index)) open.set(index, messages);
    },
    upTo(acknowledged) {
      for (const [index, messages] of open) {
        if (messages === undefined || messages > acknowledged) break;
        open.delete(index);
        committed = index;
      }
      return committed;
    },
  };
}
