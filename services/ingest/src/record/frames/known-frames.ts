import type { Moment } from "@tapedeck/shared/time/moment";
import { momentKey } from "@tapedeck/shared/time/moment";

/**
 * What the log has of one channel already, as a multiset: a repeated frame is dropped as often as it was recorded. The
 * key is the SHA-256 of the bytes as recorded, which hold the upstream's own time too.
 */
export type KnownFrames = {
  /**
   * Recorded from an earlier connection: this one may repeat it. With a moment (the upstream's own) it is known by that
   * too, where its bytes may differ.
   */
  addEarlier(sha: string, moment?: Moment): void;
  /** Recorded from this very connection: the tap may push it again, at the very time that it had then. */
  addOfThis(sha: string, at: Moment | undefined): void;
  /** True if the frame is known, which uses up one of its kind. */
  take(sha: string, at: Moment, moment?: Moment): boolean;
  readonly size: number;
};

export function knownFrames(): KnownFrames {
  const counts = new Map<string, number>();
  const byMoment = new Map<string, string[]>();
  let size = 0;
  const add = (key: string) => {
    counts.set(key, (counts.get(key) ?? 0) + 1);
    size++;
  };
  const takeKey = (key: string): boolean => {
    const count = counts.get(key);
    if (count === undefined) return false;
    if (count === 1) counts.delete(key);
    else counts.set(key, count - 1);
    size--;
    return true;
  };
  const takeMoment = (moment: Moment | undefined): boolean =>
    (byMoment.get(momentKey(moment)) ?? []).some((sha) => takeKey(sha));
  return {
    addEarlier: (sha, moment) => {
      add(sha);
      if (moment === undefined) return;
      const key = momentKey(moment);
      byMoment.set(key, [...(byMoment.get(key) ?? []), sha]);
    },
    addOfThis: (sha, at) => add(pushedKey(sha, at)),
    take: (sha, at, moment) =>
      size > 0 && (takeKey(pushedKey(sha, at)) || takeKey(sha) || (byMoment.size > 0 && takeMoment(moment))),
    get size() {
      return size;
    },
  };
}

const pushedKey = (sha: string, at: Moment | undefined) => `${sha}@${momentKey(at)}`;
