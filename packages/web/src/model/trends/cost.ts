import { durationText, plural } from "@tapedeck/client/lanes/format";
import { type Cause, type Causes, causeText, shareText, type WaitedFor } from "./figures.ts";

/** What cost most, and whether it is new. */
export type Cost = {
  readonly what: string;
  /** "26 s of waiting, 52 %" */
  readonly cost: string;
  /** "new: none in the 7 days before", "40 % in the 7 days before" */
  readonly before: string;
  readonly isNew: boolean;
};

/** The time of equal length with which one is compared: "in the 7 days before". */
export function periodBefore({ from, to }: { readonly from: number; readonly to: number }): string {
  const days = Math.round((to - from) / 86_400_000);
  return days <= 1 ? "in the day before" : `in the ${plural(days, "day")} before`;
}

const nothingBefore = (period: string) => `nothing to compare with ${period}`;
const newSince = (period: string) => `new: none ${period}`;

type Waits = { readonly now: readonly WaitedFor[]; readonly before: readonly WaitedFor[] };

/** The phase that loops waited for longest. Time that no step took is nobody's to mend. */
export function costliestPhase({ now, before }: Waits, period: string): Cost | undefined {
  const most = now.find(({ phase }) => phase !== "other");
  if (most === undefined) return undefined;
  const old = before.find(({ phase }) => phase === most.phase);
  return {
    what: most.phase,
    cost: `${durationText(most.ms)} of waiting, ${shareText(most.share)}`,
    before:
      before.length === 0
        ? nothingBefore(period)
        : old === undefined
          ? newSince(period)
          : `${shareText(old.share)} ${period}`,
    isNew: before.length > 0 && old === undefined,
  };
}

export type CostlyCause = Cost & { readonly key: string };

/** The cause that failed most often. `before`: failures by cause; `hasBefore`: whether anything ran then. */
export function costliestCause(
  { top, count }: Causes,
  before: ReadonlyMap<string, number>,
  hasBefore: boolean,
  period: string,
): CostlyCause | undefined {
  const [most] = top;
  if (most === undefined) return undefined;
  const old = before.get(most.key) ?? 0;
  return {
    key: most.key,
    what: causeText(most),
    cost: `${most.count} of ${count} failures`,
    before: !hasBefore ? nothingBefore(period) : old === 0 ? newSince(period) : `not new: ${old} ${period}`,
    isNew: isNewCause(most, before, hasBefore),
  };
}

export function isNewCause({ key }: Pick<Cause, "key">, before: ReadonlyMap<string, number>, hasBefore: boolean) {
  return hasBefore && !before.has(key);
}
