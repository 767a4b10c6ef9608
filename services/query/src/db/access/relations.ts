/**
 * What readers of the database may ask, and by what it is known whose a row is: by a column `workspace`, by the first
 * part of `source`, or, of a view, by the tables that it reads.
 */
export const readable: Readonly<Record<string, "workspace" | "source" | "view">> = {
  sources: "workspace",
  sessions: "workspace",
  events: "workspace",
  operations: "workspace",
  loops: "view",
  build_times: "view",
  build_times_daily: "view",
  command_times: "view",
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

/** What is Tapedeck's own: nobody else reads it. The months of `events` are read through `events`. */
export const withheld: readonly string[] = [
  "checkpoint",
  "fold_states",
  "snapshots",
  "vagrant_job_spans",
  "vagrant_job_versions",
  "kysely_migration",
  "kysely_migration_lock",
];
