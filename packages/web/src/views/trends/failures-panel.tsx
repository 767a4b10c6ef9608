import { useMemo, useState } from "preact/hooks";
import type { Before } from "../../data/read-trends.ts";
import type { Answered } from "../../data/reading.ts";
import { type Bin, binText, tickText } from "../../model/trends/bins.ts";
import type { Choice } from "../../model/trends/choice.ts";
import { isNewCause } from "../../model/trends/cost.ts";
import { type Cause, type Causes, causeText, maxCauses, restKey } from "../../model/trends/figures.ts";
import { Chart } from "../../parts/chart.tsx";
import { between } from "../../parts/chart-axes.ts";
import { useColours } from "../../parts/colours.ts";
import { BinTable, pickedBins } from "./chart-panel.tsx";
import { Panel, type PanelSql } from "./panel.tsx";

export type FailuresPanelProps = {
  readonly answered: Answered<Causes>;
  readonly choice: Choice;
  readonly bins: readonly Bin[];
  readonly before: Before;
  readonly sql: PanelSql;
  readonly pick: (bins: readonly [number, number] | undefined, of: string | undefined) => void;
};

const definition =
  "A failed loop counts once, by what failed in it first; so does what fails outside of loops, such as vagrant up.";

/** Causes on top of each other, the most frequent at the bottom. Each is chosen in the list below. */
export function FailuresPanel({ answered, choice, bins, before, sql, pick }: FailuresPanelProps) {
  const { value: causes, error } = answered;
  const { group, zone, pick: chosen } = choice;
  const [at, setAt] = useState<number>();
  const colour = useColours();
  const texts = useMemo(() => bins.map((bin) => binText(bin, group, zone)), [bins, group, zone]);
  const ticks = useMemo(() => bins.map((bin) => tickText(bin, group, zone)), [bins, group, zone]);
  const visible = useMemo(() => [...causes.top, ...(causes.rest === undefined ? [] : [causes.rest])], [causes]);
  const shades = visible.map((cause, index) => shadeOf(cause, index, colour));
  const series = useMemo(() => stacked(visible, shades), [visible, colour]);
  const countAt = (index: number) => (at === undefined ? visible[index]?.count : visible[index]?.counts[at]) ?? 0;
  const describe = (bin: number) => {
    const parts = visible.filter(({ counts }) => counts[bin]).map((one) => `${causeText(one)} ${one.counts[bin]}`);
    return `${texts[bin]}: ${parts.length === 0 ? "no failure" : parts.join(", ")}`;
  };
  const figures = visible.map((cause) => ({
    name: causeText(cause),
    all: cause.count,
    values: cause.counts.map((count) => (count === 0 ? null : count)),
  }));
  return (
    <Panel name="failures" title="Failures by cause" definition={definition} sql={sql} error={error}>
      {causes.count === 0 ? (
        <p class="nothing">Nothing failed in this time.</p>
      ) : (
        <>
          <Chart
            label="Failures by cause"
            shape="bars"
            unit="count"
            format={String}
            series={series}
            ticks={ticks}
            describe={describe}
            at={at}
            point={setAt}
            picked={pickedBins(choice, "failures", bins)}
            pick={(first, last) => pick([first, last], undefined)}
          />
          <ul class="causes" aria-label="Causes">
            {visible.map((cause, index) => (
              <li key={cause.key}>
                <button
                  type="button"
                  aria-pressed={chosen?.chart === "failures" && chosen.of === cause.key}
                  onClick={() => pick(undefined, cause.key)}
                  title={causeText(cause)}
                >
                  <span class="swatch square" aria-hidden="true" style={{ background: shades[index] ?? "" }} />
                  <span class="what">{causeText(cause)}</span>
                  {cause.key !== restKey && isNewCause(cause, before.causes, hasFigures(before)) && (
                    <span class="new" title="It did not fail in the time of equal length before">
                      new
                    </span>
                  )}
                  <span class="number">{countAt(index)}</span>
                </button>
              </li>
            ))}
          </ul>
          <p class="when">{at === undefined ? "" : texts[at]}</p>
          <BinTable
            caption="Failures by cause"
            figures={figures}
            bins={bins}
            texts={texts}
            textOf={(_, value) => (value === null || value === undefined ? "0" : String(value))}
          />
        </>
      )}
    </Panel>
  );
}

/** Whether anything ran, so that what is not there is new now. */
export function hasFigures({ loops, causes }: Before): boolean {
  return causes.size > 0 || Number(loops?.loops ?? 0) > 0;
}

/** All are failures, so all are red, the most frequent the loudest; the rest is grey. */
function shadeOf({ key }: Cause, index: number, colour: (name: string) => string): string {
  if (key === restKey) return colour("unknown-bar");
  return between(colour("failure-first"), colour("failure-last"), index / (maxCauses - 1));
}

/** Sums from the bottom up; what is drawn first is covered by what is drawn next. */
function stacked(causes: readonly Cause[], shades: readonly string[]) {
  return causes
    .map((cause, index) => ({
      name: causeText(cause),
      colour: shades[index] ?? "bad-bar",
      values: cause.counts.map((_, bin) => {
        const sum = causes.slice(0, index + 1).reduce((all, { counts }) => all + (counts[bin] ?? 0), 0);
        return sum === 0 ? null : sum;
      }),
    }))
    .toReversed();
}
