// Details of an event, by the noun of its kind. Bytes are base64, times are RFC 3339.

export type SourceDetail = {
  /** Names as the user wrote them. */
  readonly developerName: string;
  readonly projectName: string;
};

export type SessionDetail = {
  /**
   * session.started: the labels of the session. session.labelled: those that differ since then, for the dev loops that began
   * at the event's time or later; empty: none of this name. It replaces an earlier session.labelled.
   */
  readonly labels: Readonly<Record<string, string>>;
  /** session.started: whether secrets are masked. */
  readonly redact: "on" | "off" | (string & {});
  readonly upstreamVersion: string;
  /** session.ended, session.lost: the reason. */
  readonly reason: string;
  readonly fingerprintChannel: string;
  readonly fingerprintAt?: string;
  readonly fingerprintSha256: string;
  /** session.described: the upstream's own state messages, by API. */
  readonly states: Readonly<Record<string, string>>;
  /** session.described: these states replace the whole folded state, statuses included. */
  readonly adopted?: boolean;
  /** session.started of an imported session: the id under which it was first recorded. */
  readonly originSession?: string;
  /** session.ended: of the upstream's process, where the tap ran it. */
  readonly exitCode?: number;
  /** session.ended: the command in which the session was recorded (`tapedeck run`). */
  readonly commandRun?: CommandRun;
  /** session.labelled: the files that changed for the dev loop that began at the event's time. */
  readonly changedFiles?: ChangedFiles;
  /**
   * session.erased: the events of channel `tapedeck` that were erased with the session. `expired`: it ended longer ago than its
   * workspace keeps facts.
   */
  readonly erased?: { readonly ordinals: readonly OrdinalRange[]; readonly expired: boolean };
};

/** Files that differ from those of the loop before. At the first loop: all that are not committed. */
export type ChangedFiles = {
  readonly files: readonly {
    /** Relative to the repository. */
    readonly path: string;
    readonly change: "added" | "modified" | "deleted" | (string & {});
  }[];
  /** How many changed beside these. */
  readonly more: number;
};

/** A command that `tapedeck run` started. */
export type CommandRun = {
  /** Without secrets. */
  readonly commandLine: string;
  /** It is not the upstream's own program but started it, such as `make`. */
  readonly wrapper?: boolean;
  readonly startedAt?: string;
  readonly endedAt?: string;
  /** Absent if a signal ended it. */
  readonly exitCode?: number;
  /** "SIGKILL"; else empty. */
  readonly signal: string;
};

/** Ordinals of one channel, both inclusive. */
export type OrdinalRange = { readonly channel: string; readonly first: number; readonly last: number };

/** session.gap: something may be missing. session.gap_filled: what an open gap lacked has now been recorded. */
export type GapDetail = {
  readonly channel: string;
  readonly reason: string;
  /** Numbers of items that were dropped, by kind of item. */
  readonly dropped: Readonly<Record<string, number>>;
  /** Output of a job that may be missing. */
  readonly output?: {
    readonly job: string;
    readonly index: number;
    readonly nextIndex?: number;
    readonly atLeast?: boolean;
  };
  /** Events that are no longer in the log, with the positions of the events before and after them (empty if there is none). */
  readonly lost?: {
    readonly after: string;
    readonly before: string;
    readonly ordinals: readonly OrdinalRange[];
    readonly events: number;
  };
  /** The gap is open: the missing part may still come. */
  readonly open?: boolean;
};

export type LoopDetail = {
  /** The upstream's own number of the loop. */
  readonly iteration: number;
};

export type BuildDetail = {
  readonly artifact: string;
  readonly hostPlatform: string;
  readonly targetPlatforms: string;
  readonly cacheHit: boolean;
};

/** Details of tests, renders, deploys, verifications, executions and status checks. */
export type PhaseDetail = {
  readonly name: string;
  readonly taskId: string;
  /** The upstream's status text. */
  readonly status: string;
};

export type ResourceDetail = {
  readonly resource: string;
  readonly status: string;
  readonly message: string;
  readonly url: string;
};

export type SyncDetail = { readonly image: string; readonly fileCount: number };

export type PortDetail = {
  readonly localPort: number;
  readonly remotePort: number;
  readonly resourceType: string;
  readonly resourceName: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly address: string;
  readonly portName: string;
};

export type DebugDetail = {
  readonly pod: string;
  readonly container: string;
  readonly namespace: string;
  readonly artifact: string;
  readonly runtime: string;
  readonly ports: Readonly<Record<string, number>>;
};

/** log.written, terminal.written. */
export type TextDetail = {
  /** Verbatim, with colours and line ends. */
  readonly text: string;
  readonly level: string;
  readonly task: string;
  readonly subtask: string;
  readonly pod: string;
  readonly container: string;
  /** An empty piece of output: do not show it. */
  readonly noise: boolean;
  /** terminal.written: the job that printed it, and its index in the job's output. */
  readonly output?: {
    readonly job: string;
    readonly index: number;
    readonly stream: string;
    readonly offset: number;
  };
};

/** A call to the upstream that a client made through Tapedeck. */
export type ControlDetail = {
  /** Full gRPC method. */
  readonly method: string;
  /** Pairs control.requested with its answer. */
  readonly call: string;
  readonly who: string;
  readonly request: string;
  readonly forwardedMethod: string;
  readonly forwardedRequest: string;
  /** gRPC status code and text of the upstream's answer. */
  readonly code: number;
  readonly message: string;
};

export type UpstreamDetail = {
  readonly address: string;
  readonly reason: string;
  readonly connection: string;
  readonly channel: string;
  /** gRPC status code that ended it. */
  readonly code: number;
  readonly tap: string;
  /** upstream.lost: the tap disappeared without closing its stream. upstream.restored: it has come back. */
  readonly unheard?: boolean;
};

/** An event that another channel reports too. It is kept to serve its own channel again. */
export type MirrorDetail = {
  readonly what: string;
  readonly status: string;
  readonly taskId: string;
  readonly subtaskId: string;
};

/** The detail of inventory.described: all that is known, in parts. */
export type HostDetail = {
  readonly part: number;
  readonly parts: number;
  readonly entries: number;
  readonly texts: readonly {
    readonly pod: string;
    readonly app: string;
    readonly at?: string;
    readonly sha256: readonly string[];
  }[];
  readonly gone: readonly string[];
  readonly returned: readonly string[];
};

export type PodDetail = {
  readonly pod: string;
  readonly name: string;
  readonly state: string;
  readonly phase: string;
  readonly lastState: string;
  /** pod.exited: false when the pod ended before it had started. */
  readonly started?: boolean;
  readonly pid: number;
  readonly cgroup: string;
  /** "name=address" */
  readonly networks: readonly string[];
  readonly apps: readonly string[];
  readonly removed: boolean;
};

export type AppDetail = {
  readonly pod: string;
  readonly app: string;
  readonly imageId: string;
  readonly imageName: string;
  readonly imageVersion: string;
  /** app.exited. `exitCodeKnown` is false for 0, because rkt also reports 0 when there is no exit code. */
  readonly exitCode?: number;
  readonly exitCodeKnown: boolean;
  readonly removed: boolean;
};

export type ImageDetail = {
  readonly image: string;
  readonly name: string;
  readonly version: string;
  /** Bytes. */
  readonly size: number;
};

export type JobDetail = {
  readonly job: string;
  readonly operation: string;
  /** The command of a job, such as "up" or "box add". */
  readonly command: string;
  readonly args: readonly string[];
  readonly scope: string;
  readonly scopeId: string;
  readonly scopeName: string;
  readonly runner: string;
  readonly state: string;
  readonly attempt: number;
  readonly reason: string;
  readonly stale: boolean;
  readonly expireTime?: string;
};

export type CommandDetail = {
  readonly job: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly scopeName: string;
  /** command.finished: whether the command succeeded. */
  readonly succeeded: boolean;
  readonly exitCode: number;
  readonly canceled: boolean;
};

/** Details of Vagrant's targets, projects, bases, boxes and runners. */
export type VagrantResourceDetail = {
  readonly kind: string;
  readonly id: string;
  readonly name: string;
  readonly parentId: string;
  readonly parentName: string;
  readonly state: string;
  readonly lastState: string;
  readonly changed: readonly string[];
  readonly replaces: string;
  readonly scrubbed: boolean;
  readonly provider: string;
  readonly version: string;
  readonly directory: string;
  readonly job: string;
};

/** By the noun of the kind; session.gap and session.gap_filled have a GapDetail. */
export type Details = {
  readonly source: SourceDetail;
  readonly session: SessionDetail;
  readonly loop: LoopDetail;
  readonly init: PhaseDetail;
  readonly build: BuildDetail;
  readonly test: PhaseDetail;
  readonly render: PhaseDetail;
  readonly deploy: PhaseDetail;
  readonly verify: PhaseDetail;
  readonly exec: PhaseDetail;
  readonly check: PhaseDetail;
  readonly resource: ResourceDetail;
  readonly sync: SyncDetail;
  readonly port: PortDetail;
  readonly debugger: DebugDetail;
  readonly log: TextDetail;
  readonly terminal: TextDetail;
  readonly control: ControlDetail;
  readonly upstream: UpstreamDetail;
  readonly mirror: MirrorDetail;
  readonly inventory: HostDetail;
  readonly pod: PodDetail;
  readonly app: AppDetail;
  readonly image: ImageDetail;
  readonly job: JobDetail;
  readonly command: CommandDetail;
  readonly target: VagrantResourceDetail;
  readonly project: VagrantResourceDetail;
  readonly basis: VagrantResourceDetail;
  readonly box: VagrantResourceDetail;
  readonly runner: VagrantResourceDetail;
};
