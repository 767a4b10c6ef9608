import type { GreenFigures, LoopFigures } from "@tapedeck/client";
import { durationText, plural } from "@tapedeck/client/lanes/format";
import { useEffect, useMemo, useState } from "preact/hooks";
import "../../look/trends.css";
import { readFittedRange } from "../../data/read-fitted-range.ts";
import { type OverTime, readTrends, type Trends } from "../../data/read-trends.ts";
import { useReading } from "../../data/reading.ts";
import { useTitle } from "../../data/tab.ts";
import { about, lostSince } from "../../data/tapedeck.ts";
import { nothingRecorded } from "../../model/own.ts";
import { type Choice, choiceOf, groupFor, hasRange, type Pick, trendsPath } from "../../model/trends/choice.ts";
import { seriesOf, shareText } from "../../model/trends/figures.ts";
import { type ChartQuery, sqlOf } from "../../model/trends/sql.ts";
import { whoseText } from "../../model/trends/whose.ts";
import { dateAt } from "../../model/trends/zone.ts";
import { ErrorNotice, Loading } from "../../parts/small.tsx";
import { navigate } from "../../router.ts";
import { ChartPanel, type Figure } from "./chart-panel.tsx";
import { ChoiceBar } from "./choice-bar.tsx";
import { CostSummary } from "./cost-summary.tsx";
import { FailuresPanel } from "./failures-panel.tsx";
import { LoopsBehind } from "./loops-behind.tsx";
import { PanelFilters, type PanelSql } from "./panel.tsx";
import { SidesPanel } from "./sides-panel.tsx";
import { CommandsPanel, FlakyPanel, SlowPanel } from "./tables.tsx";
import { WaitsPanel } from "./waits-panel.tsx";

type TrendsViewProps = { readonly query: string };

/** This view answers who waits for what, and since when. `query` is the URL's, which contains all choices. */
export function TrendsView({ query }: TrendsViewProps) {
  return hasRange(query) ? <ChosenTrends query={query} /> : <FittedTrends query={query} />;
}

/** Without a range it is one that fits what is recorded. */
function FittedTrends({ query }: TrendsViewProps) {
  const [error, setError] = useState<string>();
  useReading(
    [query],
    async (signal) => {
      const range = await readFittedRange(signal);
      navigate(trendsPath({ ...choiceOf(query), range, group: groupFor(range) }), { replace: true });
    },
    setError,
  );
  return error === undefined ? <Loading what="the trends" /> : <ErrorNotice text={error} />;
}

function ChosenTrends({ query }: TrendsViewProps) {
  const choice = useMemo(() => choiceOf(query), [query]);
  const [displayed, setDisplayed] = useState<{ readonly trends: Trends; readonly choice: string }>();
  const [error, setError] = useState<string>();
  const { pick, ...unpicked } = choice;
  const requested = trendsPath({ ...unpicked, sql: [] });
  useReading(
    [requested],
    async (signal) => {
      setError(undefined);
      setDisplayed({ trends: await readTrends(choice, signal), choice: requested });
      lostSince.value = undefined;
    },
    setError,
  );
  useTitle("Trends");
  useEffect(() => {
    // A copied URL shows the same in another time zone, too.
    navigate(trendsPath(choice), { replace: true });
  }, []);
  if (error !== undefined) return <ErrorNotice text={error} />;
  if (displayed === undefined) return <Loading what="the trends" />;
  const isOld = displayed.choice !== requested;
  return (
    <TrendsPanels
      trends={displayed.trends}
      choice={isOld ? { ...choiceOf(displayed.choice.split("?")[1] ?? ""), sql: choice.sql } : choice}
    />
  );
}

type TrendsPanelsProps = { readonly trends: Trends; readonly choice: Choice };

function TrendsPanels({ trends, choice }: TrendsPanelsProps) {
  const { bins, causes, loops, commands } = trends;
  const { zone } = choice;
  const [first, last] = [bins.at(0), bins.at(-1)];
  const days = { from: dateAt(first?.from ?? 0, zone), to: dateAt((last?.to ?? 1) - 1, zone) };
  const count = loops.value.all?.loops ?? 0;
  const isKnown = [loops, causes, commands].every(({ error }) => error === undefined);
  const hasNothing = isKnown && count === 0 && causes.value.count === 0 && commands.value.length === 0;
  const sql = (query: ChartQuery): PanelSql => ({
    text: sqlOf(query, { ...choice, workspace: trends.workspace, bins }),
    isOpen: choice.sql.includes(query),
    toggle: () => navigate(trendsPath({ ...choice, sql: toggled(choice.sql, query) }), { replace: true }),
  });
  const go = (pick: Pick) => navigate(trendsPath({ ...choice, pick }));
  const whose = whoseText(choice, about.value?.token);
  const pickBins = (chart: Pick["chart"]) => (from: number, to: number) => go({ chart, ...binNames(trends, from, to) });
  return (
    <div class="trends">
      <header class="title">
        <h1>Trends</h1>
        {loops.error === undefined && trends.developers.length > 0 && (
          <p class="quiet-text">{plural(count, "loop")} in this time</p>
        )}
        {!hasNothing && choice.pick === undefined && (
          <p class="hint quiet-text">Click a bar or a row, or drag over a chart, to see the loops behind it.</p>
        )}
      </header>
      {!hasNothing && whose !== undefined && <p class="quiet-text">{whose}</p>}
      {/* Before anything is recorded, there is nothing to choose from. */}
      {(!hasNothing || trends.developers.length > 0) && <ChoiceBar choice={choice} days={days} {...trends} />}
      {hasNothing ? (
        <Nothing trends={trends} choice={choice} />
      ) : (
        <PanelFilters.Provider value={choice}>
          <div class={choice.pick === undefined ? "charts" : "charts has-behind"}>
            <CostSummary trends={trends} go={go} />
            <div class="multiples">
              {trends.sides !== undefined && choice.by !== undefined && (
                <SidesPanel
                  answered={trends.sides}
                  by={choice.by}
                  choice={choice}
                  sql={sql("sides")}
                  pick={(of) => go({ chart: "sides", of })}
                />
              )}
              <LoopPanels trends={trends} choice={choice} sql={sql} pickBins={pickBins} go={go} />
              <FailuresPanel
                answered={causes}
                choice={choice}
                bins={bins}
                before={trends.before.value}
                sql={sql("failures")}
                pick={(range, of) =>
                  go({
                    chart: "failures",
                    ...(range && binNames(trends, ...range)),
                    ...(of !== undefined && { of }),
                  })
                }
              />
              <TablePanels trends={trends} choice={choice} sql={sql} go={go} />
            </div>
            {choice.pick !== undefined && (
              <LoopsBehind choice={choice} pick={choice.pick} bins={bins} causes={causes.value} />
            )}
          </div>
        </PanelFilters.Provider>
      )}
    </div>
  );
}

function toggled(names: readonly string[], name: string): readonly string[] {
  return names.includes(name) ? names.filter((one) => one !== name) : [...names, name];
}

type TablePanelsProps = TrendsPanelsProps & {
  readonly sql: (query: ChartQuery) => PanelSql;
  readonly go: (pick: Pick) => void;
};

function TablePanels({ trends, choice, sql, go }: TablePanelsProps) {
  return (
    <>
      <SlowPanel
        answered={trends.slow}
        sql={sql("slow")}
        picked={choice.pick?.chart === "slow" ? choice.pick : undefined}
        pick={(of) => go({ chart: "slow", of })}
      />
      <FlakyPanel
        answered={trends.flaky}
        sql={sql("flaky")}
        picked={choice.pick?.chart === "flaky" ? choice.pick : undefined}
        pick={(of) => go({ chart: "flaky", of })}
      />
      {(trends.commands.value.length > 0 || trends.commands.error !== undefined) && (
        <CommandsPanel
          answered={trends.commands}
          sql={sql("commands")}
          picked={choice.pick?.chart === "commands" ? choice.pick : undefined}
          pick={(of) => go({ chart: "commands", of })}
        />
      )}
    </>
  );
}

function binNames({ bins }: Trends, first: number, last: number): Partial<Pick> {
  const [since, until] = [bins[first]?.key, bins[last]?.key];
  return since === undefined || until === undefined ? {} : { since, until };
}

type LoopPanelsProps = TrendsPanelsProps & {
  readonly sql: (query: ChartQuery) => PanelSql;
  readonly pickBins: (chart: Pick["chart"]) => (first: number, last: number) => void;
  readonly go: (pick: Pick) => void;
};

/** The cost of one loop leads, not the sum of all: faster builds cause more builds. */
function LoopPanels({ trends, choice, sql, pickBins, go }: LoopPanelsProps) {
  const { loops, green, bins } = trends;
  const waits = useMemo(() => waitsOf(loops.value), [loops]);
  const reds = useMemo(() => redsOf(green.value), [green]);
  const shares = useMemo(() => sharesOf(loops.value), [loops]);
  const common = { choice, bins } as const;
  return (
    <>
      <ChartPanel
        {...common}
        name="wait"
        title="Wait per loop"
        sql={sql("wait")}
        shape="lines"
        unit="duration"
        definition="From Skaffold's noticing a change until it is ready: deployed and, where it is on, checked. Of loops that succeeded."
        nothing="No loop became ready in this time."
        format={durationText}
        figures={waits}
        error={loops.error}
        pick={pickBins("wait")}
      />
      <WaitsPanel
        answered={loops}
        sql={sql("waits")}
        picked={choice.pick?.chart === "waits" ? choice.pick : undefined}
        pick={(of) => go({ chart: "waits", of })}
      />
      <ChartPanel
        {...common}
        name="green"
        title="Time to green"
        sql={sql("green")}
        shape="lines"
        unit="duration"
        definition="From a source's first failed loop to its next good one, by when it failed."
        nothing="No source failed and became good again in this time."
        format={durationText}
        figures={reds}
        error={green.error}
        pick={pickBins("green")}
      />
      <ChartPanel
        {...common}
        name="overtaken"
        title="Overtaken loops"
        sql={sql("overtaken")}
        shape="bars"
        unit="share"
        definition="Share of loops whose next change came before they were ready: nobody saw what they made."
        nothing="No loop ended in this time."
        format={shareText}
        figures={shares}
        error={loops.error}
        pick={pickBins("overtaken")}
      />
    </>
  );
}

const lines = [
  { colour: "text", width: 2 },
  { colour: "quiet", width: 1.5 },
  { colour: "quiet", width: 1, isDashed: true },
] as const;

function waitsOf({ all, bins }: OverTime<LoopFigures>): readonly Figure[] {
  const percentiles = [
    ["p50", "readyP50Ms"],
    ["p90", "readyP90Ms"],
    ["p99", "readyP99Ms"],
  ] as const;
  return percentiles.map(([name, figure], index) => ({
    name,
    all: all?.[figure] ?? null,
    values: seriesOf(bins, (row) => row[figure]),
    ...lines[index],
  }));
}

function redsOf({ all, bins }: OverTime<GreenFigures>): readonly Figure[] {
  return [
    { name: "p50", all: all?.redP50Ms ?? null, values: seriesOf(bins, (row) => row.redP50Ms), ...lines[0] },
    { name: "p90", all: all?.redP90Ms ?? null, values: seriesOf(bins, (row) => row.redP90Ms), ...lines[1] },
    {
      name: "still red",
      format: String,
      all: all?.stillRed ?? 0,
      values: seriesOf(bins, ({ stillRed }) => stillRed),
    },
  ];
}

function sharesOf({ all, bins }: OverTime<LoopFigures>): readonly Figure[] {
  const count = all?.loops ?? 0;
  return [
    {
      name: "overtaken",
      colour: "warning-bar",
      all: count === 0 ? null : (all?.overtakenShare ?? null),
      values: seriesOf(bins, ({ overtakenShare }) => overtakenShare),
    },
    { name: "loops", format: String, all: count, values: seriesOf(bins, (row) => row.loops) },
  ];
}

function Nothing({ trends, choice }: TrendsPanelsProps) {
  const { pick: _, ...unpicked } = choice;
  const none = nothingRecorded(about.value?.token);
  if (trends.developers.length === 0) {
    return (
      <div class="empty">
        <h2>{none.title}</h2>
        {none.reason !== undefined && <p>{none.reason}</p>}
        <p>
          The first loop that ends is the first point here. <a href="/">How to record one</a>
        </p>
      </div>
    );
  }
  const isFiltered = choice.developers.length + choice.projects.length + choice.labels.length > 0;
  return (
    <div class="empty">
      <h2>No loop ended in this time</h2>
      <p>
        <a href={trendsPath({ ...unpicked, range: "1y", group: "week" })}>Show a year</a>
        {isFiltered && (
          <>
            {" "}
            or{" "}
            <a href={trendsPath({ ...unpicked, developers: [], projects: [], labels: [] })}>
              everything that is recorded
            </a>
          </>
        )}
      </p>
    </div>
  );
}
