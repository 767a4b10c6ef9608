import type { LoopFigures } from "@tapedeck/client";
import { durationText } from "@tapedeck/client/lanes/format";
import type { OverTime } from "../../data/read-trends.ts";
import type { Answered } from "../../data/reading.ts";
import type { Pick } from "../../model/trends/choice.ts";
import { shareText, waitedFor } from "../../model/trends/figures.ts";
import { Panel, type PanelSql } from "./panel.tsx";
import { Sparkline } from "./sparkline.tsx";

type WaitsPanelProps = {
  readonly answered: Answered<OverTime<LoopFigures>>;
  readonly sql: PanelSql;
  readonly picked: Pick | undefined;
  readonly pick: (of: string) => void;
};

/** The phases that loops waited for, longest first. Each leads to the loops that waited for it. */
export function WaitsPanel({ answered: { value, error }, sql, picked, pick }: WaitsPanelProps) {
  const waits = waitedFor(value.all, value.bins);
  return (
    <Panel
      name="waits"
      title="Waits for"
      definition="What loops waited for, failed ones included: of steps that ran at the same time, the one that held the loop up. In other, no step ran."
      sql={sql}
      error={error}
    >
      {waits.length === 0 ? (
        <p class="nothing">No loop waited for anything in this time.</p>
      ) : (
        <table class="list artifacts">
          <thead>
            <tr>
              <th scope="col">phase</th>
              <th scope="col" class="number">
                waited
              </th>
              <th scope="col" class="number">
                share
              </th>
              <th scope="col" class="over-time">
                share over time
              </th>
            </tr>
          </thead>
          <tbody>
            {waits.map(({ phase, ms, share, series }) => (
              <tr key={phase} data-phase={phase}>
                <th scope="row">
                  <button type="button" class="quiet" aria-pressed={picked?.of === phase} onClick={() => pick(phase)}>
                    {phase}
                  </button>
                  <span class="share-bar" aria-hidden="true" style={{ width: `${share * 100}%` }} />
                </th>
                <td class="number" data-value={ms}>
                  {durationText(ms)}
                </td>
                <td class="number" data-value={share}>
                  {shareText(share)}
                </td>
                <td class="over-time">
                  <Sparkline values={series} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}
