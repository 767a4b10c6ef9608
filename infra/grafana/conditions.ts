/** Rows of the chosen workspaces and projects in the dashboard's time. `at`: the column with the row's time. */
export const chosen = (at: string) => `$__timeFilter(${at}) and workspace in ($workspace) and project in ($project)`;

/** Series of the chosen workspaces and projects. */
export const chosenSeries = 'workspace=~"$workspace",project=~"$project"';
