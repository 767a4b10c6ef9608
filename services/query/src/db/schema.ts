import type { Offset } from "@tapedeck/shared/log/offset";
import type { Selectable } from "kysely";
import type { columnTypes, DB } from "./schema.generated.ts";

/**
 * The tables and views as kysely sees them. The migrations are the home of every column and document it; its type is
 * generated from the migrated database. Positions are offsets in the log (the epoch is in `checkpoint`). Timestamps are
 * RFC 3339 text in UTC with six decimals; timestamptz holds no nanoseconds, so `*_ns` has the last three digits.
 */
export type Schema = {
  readonly [Name in keyof DB]: Positioned<Name extends keyof Refinements ? Refinements[Name] : DB[Name]>;
};

/** The columns of positions. Only the log's own offsets can be written there. */
type Positioned<Columns> = {
  [Name in keyof Columns]: Name extends "position" | `${string}_position` ? AsOffset<Columns[Name]> : Columns[Name];
};
type AsOffset<Column> = Column extends number ? Offset : Column;

export type TableName = keyof typeof columnTypes;
export type RowOf<Name extends keyof Schema> = Readonly<Selectable<Schema[Name]>>;

export type SourceStatus = "recording" | "waiting" | "lost";
export type OutcomeText = "succeeded" | "failed" | "canceled" | "unknown";
type Labels = Readonly<Record<string, string>>;
/** Null: there is no label of this name any more. */
type ChangedLabels = Readonly<Record<string, string | null>>;
type Component = { readonly type: string; readonly name: string };

/** Tables with columns that hold less than their SQL types allow. */
type Refinements = {
  sources: Refined<"sources", { status: SourceStatus }>;
  sessions: Refined<"sessions", { labels: Labels }>;
  operations: Refined<"operations", { outcome: OutcomeText | null }>;
  finished_loops: Refined<"finished_loops", { outcome: OutcomeText }>;
  session_labels: Refined<"session_labels", { labels: ChangedLabels }>;
  loop_labels: Refined<"loop_labels", { labels: ChangedLabels }>;
  history: Refined<"history", { artifacts: readonly string[]; labels: Labels; tags: readonly string[] }>;
  skaffold_debug_containers: Refined<"skaffold_debug_containers", { ports: Readonly<Record<string, number>> }>;
  rkt_images: Refined<"rkt_images", { labels: Labels }>;
  vagrant_runners: Refined<"vagrant_runners", { components: readonly Component[] }>;
  vagrant_jobs: Refined<"vagrant_jobs", { args: readonly string[]; outcome: OutcomeText | null }>;
};

type Refined<Name extends keyof DB, Columns extends Partial<DB[Name]>> = Omit<DB[Name], keyof Columns> & Columns;

export type CheckpointRow = RowOf<"checkpoint">;
export type SourceRow = RowOf<"sources">;
export type SessionRow = RowOf<"sessions">;
export type EventRow = RowOf<"events">;
export type OperationRow = RowOf<"operations">;
export type FinishedLoopRow = RowOf<"finished_loops">;
export type SessionLabelsRow = RowOf<"session_labels">;
export type HistoryRow = RowOf<"history">;
export type FailedOutputRow = RowOf<"failed_outputs">;
export type FoldStateRow = RowOf<"fold_states">;
export type SnapshotRow = RowOf<"snapshots">;
export type SkaffoldArtifactRow = RowOf<"skaffold_artifacts">;
export type SkaffoldPhaseRow = RowOf<"skaffold_phases">;
export type SkaffoldResourceRow = RowOf<"skaffold_resources">;
export type SkaffoldPortRow = RowOf<"skaffold_ports">;
export type SkaffoldDebugContainerRow = RowOf<"skaffold_debug_containers">;
export type RktPodRow = RowOf<"rkt_pods">;
export type RktAppRow = RowOf<"rkt_apps">;
export type RktImageRow = RowOf<"rkt_images">;
export type RktNetworkRow = RowOf<"rkt_networks">;
export type VagrantTargetRow = RowOf<"vagrant_targets">;
export type VagrantProjectRow = RowOf<"vagrant_projects">;
export type VagrantBasisRow = RowOf<"vagrant_bases">;
export type VagrantBoxRow = RowOf<"vagrant_boxes">;
export type VagrantRunnerRow = RowOf<"vagrant_runners">;
/** The columns that all resources of a Vagrant server have. */
export type VagrantResourceRow = Pick<VagrantRunnerRow, keyof VagrantRunnerRow & keyof VagrantBasisRow>;
export type VagrantJobRow = RowOf<"vagrant_jobs">;
export type VagrantJobVersionRow = RowOf<"vagrant_job_versions">;
export type VagrantJobSpanRow = RowOf<"vagrant_job_spans">;
