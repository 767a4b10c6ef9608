import type { LoopPhase } from "@tapedeck/client";
import { durationText, plural } from "@tapedeck/client/lanes/format";
import type { SideFigures } from "../../data/read-trends.ts";
import type { Answered } from "../../data/reading.ts";
import { type Choice, type TrendsSide, trendsPath } from "../../model/trends/choice.ts";
import { phasesIn, shareText } from "../../model/trends/figures.ts";
import { Panel, type PanelSql } from "./panel.tsx";
import { Sparkline } from "./sparkline.tsx";

type SidesPanelProps = {
  readonly answered: Answered<readonly SideFigures[]>;
  readonly by: TrendsSide;
  readonly choice: Choice;
  readonly sql: PanelSql;
  readonly pick: (of: string) => void;
};

/** Developers or projects beside each other, those with the longest waits first. Each leads to its own trends, and its number of loops to these. */
export function SidesPanel({ answered: { value: all, error }, by, choice, sql, pick }: SidesPanelProps) {
  const { pick: picked, ...unpicked } = choice;
  const pathOf = (name: string) =>
    trendsPath({ ...unpicked, ...(by === "developer" ? { developers: [name] } : { projects: [name] }) });
  const waits = phasesIn(all);
  return (
    <Panel
      name="sides"
      title={by === "developer" ? "Developers side by side" : "Projects side by side"}
      definition="The loops of each in this time: how long one waits for a loop that succeeds, how many fail, how many are overtaken by the next change, and the shares of what they wait for."
      sql={sql}
      error={error}
    >
      {all.length === 0 ? (
        <p class="nothing">No loop ended in this time.</p>
      ) : (
        <div class="scrolls">
          <table class="list stacks">
            <thead>
              <tr>
                <th scope="col">{by}</th>
                {["wait p50", "wait p90", "loops", "failed", "overtaken", ...waits].map((name) => (
                  <th key={name} scope="col" class="number">
                    {name}
                  </th>
                ))}
                <th scope="col">wait p50 over time</th>
              </tr>
            </thead>
            <tbody>
              {all.map((one) => (
                <SideLine
                  key={one.name}
                  one={one}
                  waits={waits}
                  href={pathOf(one.name)}
                  isPicked={picked?.chart === "sides" && picked.of === one.name}
                  pick={pick}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

type SideLineProps = {
  readonly one: SideFigures;
  /** The phases that have columns. */
  readonly waits: readonly LoopPhase[];
  readonly href: string;
  readonly isPicked: boolean;
  readonly pick: (of: string) => void;
};

function SideLine({ one, waits, href, isPicked, pick }: SideLineProps) {
  const { name, readyP50Ms, readyP90Ms, loops, failed, overtakenShare, phases, series } = one;
  const wait = (name: string, ms: number | null) => (
    <td class="number" data-name={name} data-value={ms ?? ""}>
      {ms === null ? "–" : durationText(ms)}
    </td>
  );
  return (
    <tr data-side={name}>
      <th scope="row">
        <a href={href}>{name}</a>
      </th>
      {wait("wait p50", readyP50Ms)}
      {wait("wait p90", readyP90Ms)}
      <td class="number" data-name="loops" data-value={loops}>
        <button
          type="button"
          class="quiet"
          aria-pressed={isPicked}
          aria-label={`${plural(loops, "loop")} of ${name}`}
          onClick={() => pick(name)}
        >
          {loops}
        </button>
      </td>
      <td class="number" data-name="failed" data-value={failed}>
        {failed}
      </td>
      {[["overtaken", overtakenShare] as const, ...waits.map((phase) => [phase, phases[phase].share] as const)].map(
        ([what, share]) => (
          <td key={what} class="number" data-name={what} data-value={share}>
            {shareText(share)}
          </td>
        ),
      )}
      <td data-name="wait p50 over time">
        <Sparkline values={series} />
      </td>
    </tr>
  );
}
