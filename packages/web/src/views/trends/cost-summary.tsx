import { useContext } from "preact/hooks";
import type { Trends } from "../../data/read-trends.ts";
import { about } from "../../data/tapedeck.ts";
import type { ChartName, Pick } from "../../model/trends/choice.ts";
import { type Cost, costliestCause, costliestPhase, periodBefore } from "../../model/trends/cost.ts";
import { waitedFor } from "../../model/trends/figures.ts";
import { whoseFigures } from "../../model/trends/whose.ts";
import { hasFigures } from "./failures-panel.tsx";
import { PanelFilters, WhoseTag } from "./panel.tsx";

export type CostSummaryProps = {
  readonly trends: Trends;
  readonly go: (pick: Pick) => void;
};

/** What cost most in this time, and whether it is new: the first thing that a lead asks. */
export function CostSummary({ trends: { bins, loops, causes, before }, go }: CostSummaryProps) {
  const old = before.value.loops;
  const period = periodBefore({ from: bins.at(0)?.from ?? 0, to: bins.at(-1)?.to ?? 0 });
  const phase = costliestPhase({ now: waitedFor(loops.value.all, []), before: waitedFor(old, []) }, period);
  const cause = costliestCause(causes.value, before.value.causes, hasFigures(before.value), period);
  if (phase === undefined && cause === undefined) return null;
  return (
    <dl class="cost" aria-label="What cost most">
      {phase !== undefined && (
        <Line title="Most time" chart="waits" cost={phase} pick={() => go({ chart: "waits", of: phase.what })} />
      )}
      {cause !== undefined && (
        <Line
          title="Most failures"
          chart="failures"
          cost={cause}
          pick={() => go({ chart: "failures", of: cause.key })}
        />
      )}
    </dl>
  );
}

type LineProps = {
  readonly title: string;
  /** The chart that has the same figures. */
  readonly chart: ChartName;
  readonly cost: Cost;
  readonly pick: () => void;
};

function Line({ title, chart, cost: { what, cost, before, isNew }, pick }: LineProps) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <button type="button" class="quiet" onClick={pick} title={what}>
          {what}
        </button>
        <span>{cost}</span> <span class={isNew ? "new" : "quiet-text"}>{before}</span>{" "}
        <WhoseTag whose={whoseFigures(chart, useContext(PanelFilters), about.value?.token)} />
      </dd>
    </div>
  );
}
