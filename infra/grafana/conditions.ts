/** A column has a name that is chosen. While all are chosen, any name matches, also one that the analyst can't list. */
export const isChosen = (column: string, variable: "workspace" | "project") =>
  `${column} ~ '^(\${${variable}:regex})$'`;

/** Rows of the chosen workspaces and projects in the dashboard's time. `at`: the column with the row's time. */
export const chosen = (at: string) =>
  `$__timeFilter(${at}) and ${isChosen("workspace", "workspace")} and ${isChosen("project", "project")}`;

/** Series of the chosen workspaces and projects. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana replaces them
export const chosenSeries = 'workspace=~"${workspace:regex}",project=~"${project:regex}"';

/** The share of the operations of an hour that failed. Where none has ever failed there is no counter of failures. */
export function failedShare(by: "kind" | "project", selector: string): string {
  const ended = (outcome: string) =>
    `sum by (${by}) (increase(tapedeck_operations_total{${selector},outcome=~"${outcome}"}[1h]))`;
  return `(${ended("failed")} or 0 * ${ended("succeeded")}) / ${ended("succeeded|failed")}`;
}
