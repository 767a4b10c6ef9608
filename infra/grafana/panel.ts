import type { Builder, Dataquery } from "@grafana/grafana-foundation-sdk/cog";
import {
  BigValueColorMode,
  GraphDrawStyle,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  StackingConfigBuilder,
  StackingMode,
  VizLegendOptionsBuilder,
} from "@grafana/grafana-foundation-sdk/common";
import type { Panel as BuiltPanel } from "@grafana/grafana-foundation-sdk/dashboard";
import { DataqueryBuilder } from "@grafana/grafana-foundation-sdk/prometheus";
import { PanelBuilder as StatBuilder } from "@grafana/grafana-foundation-sdk/stat";
import { PanelBuilder as TableBuilder } from "@grafana/grafana-foundation-sdk/table";
import { PanelBuilder as TimeseriesBuilder } from "@grafana/grafana-foundation-sdk/timeseries";

/** The data sources of provisioning/datasources/tapedeck.yaml. */
export const prometheus = { type: "prometheus", uid: "tapedeck-prometheus" };
export const postgres = { type: "grafana-postgresql-datasource", uid: "tapedeck-postgres" };

/** PromQL, with the legend of its series; or SQL, whose first column of a graph is `time`. */
export type Query = PromQuery | SqlQuery;
type PromQuery = { readonly promql: string; readonly legend?: string };
type SqlQuery = { readonly sql: string; readonly isGraph: boolean };

export type Panel = {
  readonly title: string;
  readonly show: "lines" | "stacked" | "numbers" | "table";
  readonly queries: readonly Query[];
  /** A unit of Grafana, such as "ms"; by default a number. */
  readonly unit?: string;
  /** How many of the 24 columns it has. */
  readonly width?: number;
  readonly description?: string;
};

/** A query over time for a graph. */
export const series = (promql: string, legend: string): Query => ({ promql, legend });
export const graph = (sql: string): Query => ({ sql: sql.trim(), isGraph: true });
export const rows = (sql: string): Query => ({ sql: sql.trim(), isGraph: false });

/** The panel as Grafana's SDK builds it. */
export function panelOf({ title, show, queries, unit = "short", width = 12, description }: Panel): Builder<BuiltPanel> {
  const builder = builderOf(show)
    .title(title)
    .unit(unit)
    .span(width)
    .height(show === "numbers" ? 5 : 8);
  if (description !== undefined) builder.description(description);
  for (const [index, query] of queries.entries()) {
    const refId = String.fromCharCode("A".charCodeAt(0) + index);
    builder.withTarget("promql" in query ? promQuery(query, refId, show) : sqlQuery(query, refId));
  }
  return builder.datasource(queries.some((query) => "promql" in query) ? prometheus : postgres);
}

function builderOf(show: Panel["show"]) {
  switch (show) {
    case "table":
      return new TableBuilder();
    case "numbers":
      // Each column of one row is a number.
      return new StatBuilder()
        .colorMode(BigValueColorMode.None)
        .reduceOptions(new ReduceDataOptionsBuilder().calcs(["lastNotNull"]).values(false).fields("/.*/"));
    default: {
      const legend = new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true);
      const lines = new TimeseriesBuilder().legend(legend).min(0);
      if (show === "lines") return lines;
      return lines
        .drawStyle(GraphDrawStyle.Bars)
        .fillOpacity(80)
        .stacking(new StackingConfigBuilder().mode(StackingMode.Normal));
    }
  }
}

function promQuery({ promql, legend }: PromQuery, refId: string, show: Panel["show"]) {
  const builder = new DataqueryBuilder().expr(promql).refId(refId).datasource(prometheus);
  if (legend !== undefined) builder.legendFormat(legend);
  return show === "numbers" || show === "table" ? builder.instant() : builder.range();
}

/** The SDK has no builder for queries of Postgres. */
function sqlQuery({ sql, isGraph }: SqlQuery, refId: string) {
  const query = {
    refId,
    datasource: postgres,
    format: isGraph ? "time_series" : "table",
    editorMode: "code",
    rawQuery: true,
    rawSql: sql,
    _implementsDataqueryVariant() {},
  };
  return { build: (): Dataquery => query };
}
