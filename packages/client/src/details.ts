// What an event tells beside its fields, by the noun of its kind. 64-bit numbers are texts, bytes base64, times RFC 3339.

export type SourceDetail = {
  /** Names as the user wrote them. */
  readonly developerName: string;
  readonly projectName: string;
};

export type SessionDetail = {
  readonly labels: Readonly<Record<string, string>>;
  /** Of session.started: whether secrets are masked. */
  readonly redact: "on" | "off" | (string & {});
  readonly upstreamVersion: string;
  /** Of session.ended and session.lost: why. */
  readonly reason: string;
  readonly fingerprintChannel: string;
  readonly fingerprintAt?: string;
  readonly fingerprintSha256: string;
  /** Of session.described: the upstream's own messages by API. */
  readonly states: Readonly<Record<string, string>>;
  /** Of session.described: the recorded state becomes all of this, statuses too. */
  readonly adopted?: boolean;
  /** Of session.started of an imported session: the id under which it was recorded first. */
  readonly originSession?: string;
  /** Of session.erased: which events of Tapedeck's own channel went with the session. */
  readonly erased?: { readonly ordinals: readonly OrdinalRange[] };
};

/** Ordinals of one channel, both included. */
export type OrdinalRange = { readonly channel: string; readonly first: string; readonly last: string };

/** Of session.gap: something may be missing. Of session.gap_filled: what an open gap missed has been recorded since. */
export type GapDetail = {
  readonly channel: string;
  readonly reason: string;
  /** How many of what could not be kept. */
  readonly dropped: Readonly<Record<string, string>>;
  /** What may be missing of a job's output. */
  readonly output?: { readonly job: string; readonly index: string; readonly nextIndex?: string };
  /** What was recorded and is not in the log any more; positions of the events before and after it, empty where there are none. */
  readonly lost?: {
    readonly after: string;
    readonly before: string;
    readonly ordinals: readonly OrdinalRange[];
    readonly events: string;
  };
  /** What is missing may still come. */
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

/** Of tests, renders, deploys, verifications, executions and status checks. */
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

/** Of log.written and terminal.written. */
export type TextDetail = {
  /** Verbatim, with colours and line ends. */
  readonly text: string;
  readonly level: string;
  readonly task: string;
  readonly subtask: string;
  readonly pod: string;
  readonly container: string;
  /** It is there for its position alone: don't show it. */
  readonly noise: boolean;
  /** Of terminal.written: the job that printed it, and the place in its output. */
  readonly output?: {
    readonly job: string;
    readonly index: string;
    readonly stream: string;
    readonly offset: string;
  };
};

/** A call that somebody made through Tapedeck towards the upstream. */
export type ControlDetail = {
  /** Full gRPC method. */
  readonly method: string;
  /** Ties control.requested to its answer. */
  readonly call: string;
  readonly who: string;
  readonly request: string;
  readonly forwardedMethod: string;
  readonly forwardedRequest: string;
  /** gRPC status and text of the upstream's answer. */
  readonly code: number;
  readonly message: string;
};

export type UpstreamDetail = {
  readonly address: string;
  readonly reason: string;
  readonly connection: string;
  readonly channel: string;
  /** gRPC status that ended it. */
  readonly code: number;
  readonly tap: string;
  /** The tap has gone without a word; or, of upstream.restored, it has come back. */
  readonly unheard?: boolean;
};

/** What another channel tells too: kept to serve that channel again. */
export type MirrorDetail = {
  readonly what: string;
  readonly status: string;
  readonly taskId: string;
  readonly subtaskId: string;
};

/** Of inventory.described: all that is known, in parts. */
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
  /** Of pod.exited: false when it ended before it had started. */
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
  /** Of app.exited, where there is one; rkt answers 0 also when there is none, which `exitCodeKnown` tells. */
  readonly exitCode?: number;
  readonly exitCodeKnown: boolean;
  readonly removed: boolean;
};

export type ImageDetail = {
  readonly image: string;
  readonly name: string;
  readonly version: string;
  /** Bytes. */
  readonly size: string;
};

export type JobDetail = {
  readonly job: string;
  readonly operation: string;
  /** Of a command: "up", "box add". */
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
  /** Of command.finished: whether it did what it was to do. */
  readonly succeeded: boolean;
  readonly exitCode: number;
  readonly canceled: boolean;
};

/** Of Vagrant's targets, projects, bases, boxes and runners. */
export type ThingDetail = {
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
  readonly host: HostDetail;
  readonly pod: PodDetail;
  readonly app: AppDetail;
  readonly image: ImageDetail;
  readonly job: JobDetail;
  readonly command: CommandDetail;
  readonly target: ThingDetail;
  readonly project: ThingDetail;
  readonly basis: ThingDetail;
  readonly box: ThingDetail;
  readonly runner: ThingDetail;
};
