/**
 * The relations that SQL readers may read, and what determines the workspace of a row: a column `workspace`, the first part
 * of `source`, or, for a view, the tables that it reads.
 */
export const readable: Readonly<Record<string, "workspace" | "source" | "view">> = {
  sources: "workspace",
  sessions: "workspace",
  events: "workspace",
  operations: "workspace",
  finished_loops: "workspace",
  loops: "view",
  loop_times: "view",
  time_to_green: "view",
  waiting_by_developer: "view",
  failures: "view",
  build_times: "view",
  build_times_daily: "view",
  slowest_artifacts: "view",
  flaky_artifacts: "view",
  command_times: "view",
  vagrant_command_times: "view",
  pod_runs: "view",
  skaffold_artifacts: "source",
  skaffold_phases: "source",
  skaffold_resources: "source",
  skaffold_ports: "source",
  skaffold_debug_containers: "source",
  vagrant_jobs: "source",
  vagrant_targets: "source",
  vagrant_projects: "source",
  vagrant_bases: "source",
  vagrant_boxes: "source",
  vagrant_runners: "source",
  rkt_pods: "source",
  rkt_apps: "source",
  rkt_images: "source",
  rkt_networks: "source",
};

/** Relations for Tapedeck alone. Readers read the monthly partitions of `events` through `events`. */
export const withheld: readonly string[] = [
  "build_months",
  "checkpoint",
  "event_blocks",
  "event_groups",
  "event_positions",
  "fold_states",
  "snapshots",
  "vagrant_job_spans",
  "vagrant_job_versions",
  "kysely_migration",
  "kysely_migration_lock",
];
