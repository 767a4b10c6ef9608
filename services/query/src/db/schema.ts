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
};

export type SourceStatus = "recording" | "waiting" | "lost";

export type SourceRow = OfSource & {
  readonly developer_name: string;
  readonly project_name: string;
  readonly status: SourceStatus;
  /** What the status follows from: whether a tap is connected, and whether a session was begun and not ended. */
  readonly connected: boolean;
  readonly in_session: boolean;
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
  /** Of session.ended; null while it runs. */
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
  /** Apps only, when they have ended: as told; null where it is unknown for certain. */
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
