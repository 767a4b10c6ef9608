/**
 * The tables as kysely sees them. Positions are the sequence part (the epoch stands in `checkpoint`). Moments are
 * RFC 3339 text in UTC with six decimals; timestamptz holds no nanoseconds, so `*_ns` has the last three digits.
 */
export type Schema = {
  checkpoint: CheckpointRow;
  sources: SourceRow;
  sessions: SessionRow;
  events: EventRow;
  operations: OperationRow;
  fold_states: FoldStateRow;
  snapshots: SnapshotRow;
  skaffold_artifacts: SkaffoldArtifactRow;
  skaffold_phases: SkaffoldPhaseRow;
  skaffold_resources: SkaffoldResourceRow;
  skaffold_ports: SkaffoldPortRow;
  skaffold_debug_containers: SkaffoldDebugContainerRow;
  rkt_pods: RktPodRow;
  rkt_apps: RktAppRow;
  rkt_images: RktImageRow;
  rkt_networks: RktNetworkRow;
  vagrant_targets: VagrantTargetRow;
  vagrant_projects: VagrantProjectRow;
  vagrant_bases: VagrantBasisRow;
  vagrant_boxes: VagrantBoxRow;
  vagrant_runners: VagrantRunnerRow;
  vagrant_jobs: VagrantJobRow;
  vagrant_job_versions: VagrantJobVersionRow;
  vagrant_job_spans: VagrantJobSpanRow;
  build_times: BuildTimeRow;
};

/** Names of the four parts of a source, beside it for those who write SQL. */
type OfSource = {
  readonly source: string;
  readonly workspace: string;
  readonly developer: string;
  readonly project: string;
  readonly upstream: string;
};

export type CheckpointRow = {
  readonly name: string;
  /** Versions of all views and folds that wrote the tables. */
  readonly projection: string;
  readonly epoch: string;
  readonly position: number;
  /** The last event that was applied; the checkpoint may lie behind it. Null: none since this is kept. */
  readonly applied_position: number | null;
  /** When the latest of all applied events was recorded, by the log's clock, in ms since 1970. */
  readonly recorded_until_ms: number | null;
};

export type SourceStatus = "recording" | "waiting" | "lost";

export type SourceRow = OfSource & {
  readonly developer_name: string;
  readonly project_name: string;
  readonly status: SourceStatus;
  /** What the status follows from: whether a tap is connected, and whether a session was begun and not ended. */
  readonly connected: boolean;
  readonly in_session: boolean;
  /** From when it was lost until it is heard again; while a session that is over is waited for, too. */
  readonly not_heard_since: string | null;
  /** Those of no session. */
  readonly gaps: number;
  readonly address: string;
  readonly first_position: number;
  readonly last_position: number;
  readonly last_event_at: string | null;
  readonly last_event_ns: number;
};

export type SessionRow = OfSource & {
  readonly session: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly upstream_version: string;
  readonly started_at: string | null;
  readonly started_ns: number;
  readonly ended_at: string | null;
  readonly ended_ns: number;
  readonly end_reason: string;
  readonly start_position: number;
  readonly last_position: number;
  /** Of session.ended or session.lost; null while it runs. */
  readonly end_position: number | null;
  readonly gaps: number;
};

export type OutcomeText = "succeeded" | "failed" | "canceled" | "unknown";

export type EventRow = OfSource & {
  readonly position: number;
  readonly recorded_at: string;
  readonly id: string;
  readonly session: string;
  readonly channel: string;
  readonly ordinal: number;
  readonly frame_ordinal: number;
  readonly part: number;
  readonly kind: string;
  readonly subject: string;
  readonly outcome: string | null;
  readonly error_code: string;
  readonly error: string;
  readonly summary: string;
  readonly occurred_at: string | null;
  readonly occurred_ns: number;
  readonly time_source: string;
  readonly not_before: string | null;
  readonly observed_at: string | null;
  readonly operation_kind: string | null;
  readonly operation_subject: string | null;
  readonly runner: number | null;
  readonly loop: number | null;
  readonly inferred: boolean;
  readonly injected: boolean;
  readonly redacted: number;
  readonly detail: unknown;
  readonly original_type: string | null;
  readonly original_size: number | null;
};

export type OperationRow = OfSource & {
  /** Id of the event that began it (of the only one that is known, where the start was not told). */
  readonly id: string;
  readonly session: string;
  readonly runner: number;
  readonly loop: number;
  readonly kind: string;
  readonly subject: string;
  /** Tells those of one subject apart that run at the same time (commands: the id of the job); else empty. */
  readonly instance: string;
  readonly started_at: string | null;
  readonly started_ns: number;
  readonly ended_at: string | null;
  readonly ended_ns: number;
  readonly duration_ms: number | null;
  /** Null while it runs. */
  readonly outcome: OutcomeText | null;
  readonly error_code: string;
  readonly error: string;
  readonly cache_hit: boolean;
  /** Put into the upstream by a client's Handle call. */
  readonly injected: boolean;
  /** Builds only: what is built for, or where that is not told, on. */
  readonly platform: string;
  /** Loops only: the upstream's own number. */
  readonly iteration: number | null;
  /** Apps and commands only, when they have ended: as told; null where it is unknown or says nothing. */
  readonly exit_code: number | null;
  readonly start_position: number;
  readonly end_position: number | null;
};

/** The whole state of a session at the last event that could change it. */
export type FoldStateRow = {
  readonly session: string;
  readonly source: string;
  readonly fold_version: number;
  readonly position: number;
  readonly state: string;
  readonly events_since_snapshot: number;
  readonly bytes_since_snapshot: number;
};

export type SnapshotRow = {
  readonly session: string;
  readonly fold_version: number;
  readonly position: number;
  readonly state: string;
};

export type SkaffoldArtifactRow = {
  readonly session: string;
  readonly source: string;
  readonly artifact: string;
  readonly status: string;
};

export type SkaffoldPhaseRow = {
  readonly session: string;
  readonly source: string;
  readonly phase: string;
  readonly status: string;
  readonly status_code: string;
  readonly auto_trigger: boolean | null;
};

export type SkaffoldResourceRow = {
  readonly session: string;
  readonly source: string;
  readonly resource: string;
  readonly status: string;
};

export type SkaffoldPortRow = {
  readonly session: string;
  readonly source: string;
  readonly local_port: number;
  readonly remote_port: number;
  readonly resource_type: string;
  readonly resource_name: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly port_name: string;
  readonly address: string;
};

export type SkaffoldDebugContainerRow = {
  readonly session: string;
  readonly source: string;
  /** Place in the upstream's list, which may hold the same container twice. */
  readonly place: number;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly artifact: string;
  readonly runtime: string;
  readonly ports: Readonly<Record<string, number>>;
};

/** A pod as it was known last, also when it is gone from its host. What rkt answers of one being deleted is no news. */
export type RktPodRow = {
  readonly session: string;
  readonly source: string;
  readonly pod: string;
  /** What a kubelet called it, else its id. */
  readonly name: string;
  /** Without rkt's prefix; UNDEFINED: it was being deleted. */
  readonly state: string;
  readonly pid: number | null;
  readonly cgroup: string;
  readonly created_at: string | null;
  readonly started_at: string | null;
  readonly gc_marked_at: string | null;
  readonly apps: number;
  /** Not on the host any more. */
  readonly gone: boolean;
  readonly gone_at: string | null;
  /** Of the events that made it known, and that changed the row last. */
  readonly first_position: number;
  readonly last_position: number;
};

export type RktAppRow = {
  readonly session: string;
  readonly source: string;
  readonly pod: string;
  readonly app: string;
  /** As the pod's manifest writes it. */
  readonly image_id: string;
  readonly image_name: string;
  readonly image_version: string;
  readonly state: string;
  /** Null while it runs, unless rkt has told a code. 0 also where nobody knows. */
  readonly exit_code: number | null;
  /** Taken out of its pod, or gone with it. */
  readonly gone: boolean;
  readonly gone_at: string | null;
  readonly first_position: number;
  readonly last_position: number;
};

export type RktImageRow = {
  readonly session: string;
  readonly source: string;
  readonly image: string;
  readonly name: string;
  readonly version: string;
  readonly imported_at: string | null;
  /** Bytes. */
  readonly size: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly gone: boolean;
  readonly gone_at: string | null;
  readonly first_position: number;
  readonly last_position: number;
};

/** A network that a pod is in, or was in when it ran. */
export type RktNetworkRow = {
  readonly session: string;
  readonly source: string;
  readonly pod: string;
  readonly network: string;
  readonly ipv4: string;
  readonly ipv6: string;
};

/** A thing of a Vagrant server as it was known last, also when it is gone. */
export type VagrantThingRow = {
  readonly session: string;
  readonly source: string;
  /** Its resource_id, or a runner's id. */
  readonly id: string;
  /** Not there any more. */
  readonly gone: boolean;
  readonly gone_at: string | null;
  /** Of the events that made it known, and that changed the row last. */
  readonly first_position: number;
  readonly last_position: number;
  /** As the upstream answered it, after masking. */
  readonly message: Buffer;
};

export type VagrantTargetRow = VagrantThingRow & {
  readonly name: string;
  readonly project_id: string;
  readonly project_name: string;
  /** As the server calls it: DESTROYED also of a machine that is powered off. */
  readonly state: string;
  readonly provider: string;
  readonly uuid: string;
  /** Of its record, which a server of v2.3.7 never replaces: the provider's id and state of the machine, and its box. */
  readonly machine_id: string;
  readonly machine_state: string;
  readonly box_name: string;
  readonly box_version: string;
};

export type VagrantProjectRow = VagrantThingRow & {
  readonly name: string;
  readonly path: string;
  readonly basis_id: string;
  readonly basis_name: string;
  readonly remote_enabled: boolean;
};

export type VagrantBasisRow = VagrantThingRow & {
  readonly name: string;
  readonly path: string;
  readonly remote_enabled: boolean;
};

export type VagrantBoxRow = VagrantThingRow & {
  readonly name: string;
  readonly provider: string;
  readonly version: string;
  readonly directory: string;
  readonly metadata_url: string;
};

/** That a runner went can't be seen. */
export type VagrantRunnerRow = VagrantThingRow & {
  /** Takes only jobs that name it: a command's own. */
  readonly by_id_only: boolean;
  readonly components: readonly { readonly type: string; readonly name: string }[];
};

export type VagrantJobRow = {
  readonly session: string;
  readonly source: string;
  readonly job: string;
  /** "command", "init" …; empty: none that is known. */
  readonly operation: string;
  /** Of operation "command": "up", "box add"; and what the user gave with it, flags as "--name=value". */
  readonly command: string;
  readonly args: readonly string[];
  /** "basis", "project", "target" or empty, and its ref. */
  readonly scope: string;
  readonly scope_id: string;
  readonly scope_name: string;
  /** The runner that it is for, by id; empty: any. */
  readonly runner: string;
  /** Told last, without a prefix. A command that failed is a job in state SUCCESS: see outcome. */
  readonly state: string;
  /** Left behind by a command that crashed or runs elsewhere. */
  readonly stale: boolean;
  readonly queued_at: string | null;
  readonly assigned_at: string | null;
  readonly started_at: string | null;
  readonly cancel_requested_at: string | null;
  /** Null also of a job that was canceled before it had begun. */
  readonly completed_at: string | null;
  readonly expires_at: string | null;
  /** Null while it is not over; "unknown" where it was lost, has no result, or its session ended before it. */
  readonly outcome: OutcomeText | null;
  /** Commands only: as told; 0 of one that failed says nothing and is null. */
  readonly exit_code: number | null;
  readonly error_code: string;
  readonly error: string;
  /** Of the first and the last event about it, output aside. */
  readonly first_position: number;
  readonly last_position: number;
  /** hashicorp.vagrant.Job as the upstream answered it last, after masking; null: never whole. */
  readonly message: Buffer | null;
};

/** What the upstream answered of a job, from this position on. */
export type VagrantJobVersionRow = {
  readonly session: string;
  readonly source: string;
  readonly job: string;
  readonly position: number;
  readonly message: Buffer;
};

/** A stretch of the log with events of a job, and few others of its channel. */
export type VagrantJobSpanRow = {
  readonly session: string;
  readonly source: string;
  readonly job: string;
  readonly first_position: number;
  readonly last_position: number;
  /** Of the job's event at last_position. */
  readonly last_ordinal: number;
};

/** A view, one row per build. */
export type BuildTimeRow = {
  readonly workspace: string;
  readonly developer: string;
  readonly project: string;
  readonly source: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly artifact: string;
  readonly session: string;
  readonly runner: number;
  readonly loop: number;
  readonly started_at: string | null;
  readonly duration_ms: number | null;
  readonly outcome: OutcomeText | null;
  readonly cache_hit: boolean;
  readonly error_code: string;
  readonly error: string;
  readonly platform: string;
  readonly skaffold_version: string;
  readonly start_position: number;
};
