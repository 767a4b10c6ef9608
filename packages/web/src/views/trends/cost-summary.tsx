import type { Trends } from "../../data/read-trends.ts";
import type { Pick } from "../../model/trends/choice.ts";
import { type Cost, costliestCause, costliestPhase } from "../../model/trends/cost.ts";
import { waitedFor } from "../../model/trends/figures.ts";
import { hasFigures } from "./failures-panel.tsx";

export type CostSummaryProps = {
  readonly trends: Trends;
  readonly go: (pick: Pick) => void;
};

/** What cost most in this time, and whether it is new: the first thing that a lead asks. */
export function CostSummary({ trends: { loops, causes, before }, go }: CostSummaryProps) {
  const old = before.value.loops;
  const phase = costliestPhase({ now: waitedFor(loops.value.all, []), before: waitedFor(old, []) });
  const cause = costliestCause(causes.value, before.value.causes, hasFigures(before.value));
  if (phase === undefined && cause === undefined) return null;
  return (
    <dl class="cost" aria-label="What cost most">
      {phase !== undefined && (
        <Line title="Most time" cost={phase} pick={() => go({ chart: "waits", of: phase.what })} />
      )}
      {cause !== undefined && (
        <Line title="Most failures" cost={cause} pick={() => go({ chart: "failures", of: cause.key })} />
      )}
    </dl>
  );
}

type LineProps = { readonly title: string; readonly cost: Cost; readonly pick: () => void };

function Line({ title, cost: { what, cost, before, isNew }, pick }: LineProps) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <button type="button" class="quiet" onClick={pick} title={what}>
          {what}
        </button>
        <span>{cost}</span> <span class={isNew ? "new" : "quiet-text"}>{before}</span>
      </dd>
    </div>
  );
}
