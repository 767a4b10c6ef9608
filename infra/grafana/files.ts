import { dashboardOf } from "./dashboard.ts";
import { dashboards } from "./dashboards/all.ts";

/** The files that Grafana reads, by their names in json/. */
export function dashboardFiles(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    dashboards.map((one) => [`${one.uid}.json`, `${JSON.stringify(dashboardOf(one), null, 2)}\n`]),
  );
}
