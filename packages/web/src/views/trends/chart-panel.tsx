import { useMemo, useState } from "preact/hooks";
import type { Bin } from "../../model/trends/bins.ts";
import { binText, tickText } from "../../model/trends/bins.ts";
import type { Choice } from "../../model/trends/choice.ts";
import { Chart, type Drawn } from "../../parts/chart.tsx";
import type { Unit } from "../../parts/chart-axes.ts";
import { useColours } from "../../parts/colours.ts";
import { Panel, type PanelSql } from "./panel.tsx";

/** A row of the legend: what it is in all of the range, and in a bin. */
export type Figure = {
  readonly name: string;
  readonly all: number | null;
  readonly values: readonly (number | null)[];
  /** How it is drawn; a series without a colour is in the legend only. */
  readonly colour?: string;
  readonly width?: number;
  readonly isDashed?: boolean;
  readonly format?: (value: number) => string;
};

export type ChartPanelProps = {
  readonly name: "wait" | "green" | "overtaken";
  readonly title: string;
  readonly definition: string;
  readonly sql: PanelSql;
  readonly error: string | undefined;
  readonly nothing: string;
  readonly choice: Choice;
  readonly bins: readonly Bin[];
  readonly shape: "lines" | "bars";
  readonly unit: Unit;
  readonly format: (value: number) => string;
  readonly figures: readonly Figure[];
  readonly pick: (first: number, last: number) => void;
};

/** Lines or bars over time. The legend has the numbers of the bin under the pointer, else those of the whole range. */
export function ChartPanel(props: ChartPanelProps) {
  const { name, title, definition, sql, error, nothing, choice, bins, shape, unit, format, figures, pick } = props;
  const { group, zone } = choice;
  const [at, setAt] = useState<number>();
  const texts = useMemo(() => bins.map((bin) => binText(bin, group, zone)), [bins, group, zone]);
  const ticks = useMemo(() => bins.map((bin) => tickText(bin, group, zone)), [bins, group, zone]);
  const series = useMemo(() => figures.flatMap(drawn), [figures]);
  const hasNothing = series.every(({ values }) => values.every((value) => value === null));
  const textOf = (figure: Figure, value: number | null | undefined) =>
    value === null || value === undefined ? "–" : (figure.format ?? format)(value);
  const describe = (bin: number) =>
    `${texts[bin]}: ${figures.map((figure) => `${figure.name} ${textOf(figure, figure.values[bin])}`).join(", ")}`;
  return (
    <Panel name={name} title={title} definition={definition} sql={sql} error={error}>
      {hasNothing ? (
        <p class="nothing">{nothing}</p>
      ) : (
        <>
          <dl class="legend">
            {figures.map((figure) => (
              <div key={figure.name}>
                <dt>
                  <Swatch figure={figure} /> {figure.name}
                </dt>
                <dd>{textOf(figure, at === undefined ? figure.all : figure.values[at])}</dd>
              </div>
            ))}
          </dl>
          <p class="when">{at === undefined ? "" : texts[at]}</p>
          <Chart
            label={title}
            shape={shape}
            unit={unit}
            series={series}
            ticks={ticks}
            describe={describe}
            format={format}
            at={at}
            pick={pick}
            point={setAt}
            picked={pickedBins(choice, name, bins)}
          />
          <BinTable caption={title} figures={figures} bins={bins} texts={texts} textOf={textOf} />
        </>
      )}
    </Panel>
  );
}

function drawn({ name, values, colour, width, isDashed }: Figure): readonly Drawn[] {
  if (colour === undefined) return [];
  return [{ name, values, colour, ...(width !== undefined && { width }), ...(isDashed && { isDashed }) }];
}

function Swatch({ figure }: { readonly figure: Figure }) {
  const colour = useColours();
  if (figure.colour === undefined) return null;
  const line = `${figure.width ?? 4}px ${figure.isDashed ? "dashed" : "solid"} ${colour(figure.colour)}`;
  return <span class="swatch" aria-hidden="true" style={{ borderTop: line }} />;
}

/** The first and last bin that are selected in a chart. */
export function pickedBins({ pick }: Choice, name: string, bins: readonly Bin[]) {
  if (pick?.chart !== name || pick.since === undefined) return undefined;
  const [first, last] = [pick.since, pick.until ?? pick.since].map((key) => bins.findIndex((bin) => bin.key === key));
  if (first === undefined || last === undefined || first < 0 || last < 0) return undefined;
  return [first, last] as const;
}

type BinTableProps = {
  readonly caption: string;
  readonly figures: readonly Figure[];
  readonly bins: readonly Bin[];
  readonly texts: readonly string[];
  readonly textOf: (figure: Figure, value: number | null | undefined) => string;
};

/** The numbers of a chart, for those who do not see it. */
export function BinTable({ caption, figures, bins, texts, textOf }: BinTableProps) {
  return (
    <div class="hidden">
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">time</th>
            {figures.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {bins.map(({ key }, bin) => {
            if (figures.every(({ values }) => (values[bin] ?? null) === null)) return null;
            return (
              <tr key={key} data-bin={key}>
                <th scope="row">{texts[bin]}</th>
                {figures.map((figure) => (
                  <td key={figure.name} data-value={figure.values[bin] ?? ""}>
                    {textOf(figure, figure.values[bin])}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
