import { durationText } from "@tapedeck/client/lanes/format";
import { type Cause, type Causes, causeText, shareText, type WaitedFor } from "./figures.ts";

/** What cost most, and whether it is new. */
export type Cost = {
  readonly what: string;
  /** "26 s of waiting, 52 %" */
  readonly cost: string;
  /** "new", "40 % before" */
  readonly before: string;
  readonly isNew: boolean;
};

type Waits = { readonly now: readonly WaitedFor[]; readonly before: readonly WaitedFor[] };

/** The phase that loops waited for longest. Time that no step took is nobody's to mend. */
export function costliestPhase({ now, before }: Waits): Cost | undefined {
  const most = now.find(({ phase }) => phase !== "other");
  if (most === undefined) return undefined;
  const old = before.find(({ phase }) => phase === most.phase);
  return {
    what: most.phase,
    cost: `${durationText(most.ms)} of waiting, ${shareText(most.share)}`,
    before:
      before.length === 0 ? "nothing to compare with" : old === undefined ? "new" : `${shareText(old.share)} before`,
    isNew: before.length > 0 && old === undefined,
  };
}

export type CostlyCause = Cost & { readonly key: string };

/** The cause that failed most often. `before`: failures by cause; `hasBefore`: whether anything ran then. */
export function costliestCause(
  { top, count }: Causes,
  before: ReadonlyMap<string, number>,
  hasBefore: boolean,
): CostlyCause | undefined {
  const [most] = top;
  if (most === undefined) return undefined;
  const old = before.get(most.key) ?? 0;
  return {
    key: most.key,
    what: causeText(most),
    cost: `${most.count} of ${count} failures`,
    before: !hasBefore ? "nothing to compare with" : old === 0 ? "new" : `${old} before`,
    isNew: isNewCause(most, before, hasBefore),
  };
}

export function isNewCause({ key }: Pick<Cause, "key">, before: ReadonlyMap<string, number>, hasBefore: boolean) {
  return hasBefore && !before.has(key);
}
