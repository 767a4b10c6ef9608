import {
  type Dashboard as BuiltDashboard,
  DashboardBuilder,
  DashboardLinkBuilder,
  DashboardLinkType,
  QueryVariableBuilder,
  VariableRefresh,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { isChosen as isChosenName } from "./conditions.ts";
import { type Panel, panelOf, postgres } from "./panel.ts";

export type Dashboard = {
  /** Also the name of its file. */
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly panels: readonly Panel[];
  /** Whether workspaces and projects can be chosen. */
  readonly isChosen: boolean;
  readonly from?: string;
};

/** The values to choose from, by the name of the variable. */
export const variables = {
  workspace: "select distinct workspace from tapedeck.sources order by 1",
  project: `select distinct project from tapedeck.sources where ${isChosenName("workspace", "workspace")} order by 1`,
} as const;

const tag = "tapedeck";

/** The dashboard as Grafana's SDK builds it. */
export function dashboardOf({ uid, title, description, panels, isChosen, from = "now-7d" }: Dashboard): BuiltDashboard {
  const links = new DashboardLinkBuilder("Tapedeck").type(DashboardLinkType.Dashboards).tags([tag]).asDropdown(true);
  const builder = new DashboardBuilder(`Tapedeck: ${title}`)
    .uid(uid)
    .description(description)
    .tags([tag])
    .time({ from, to: "now" })
    .refresh("1m")
    .link(links.keepTime(true).includeVars(true));
  if (isChosen) {
    for (const [name, query] of Object.entries(variables)) {
      const variable = new QueryVariableBuilder(name)
        .query(query)
        .datasource(postgres)
        .multi(true)
        .includeAll(true)
        .allValue(".*");
      builder.withVariable(
        variable.current({ text: "All", value: "$__all" }).refresh(VariableRefresh.OnTimeRangeChanged),
      );
    }
  }
  for (const panel of panels) builder.withPanel(panelOf(panel));
  const built = builder.build();
  return { ...built, panels: built.panels?.map((panel, index) => ({ ...panel, id: index + 1 })) ?? [] };
}
