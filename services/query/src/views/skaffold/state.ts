import type { Base64 } from "../states/base64.ts";

/**
 * Raised whenever the same events fold to another state, or the state has another shape: snapshots of another version
 * are of no use.
 */
export const foldVersion = 2;

/**
 * What the events of one session say about both of Skaffold's states. Plain JSON: `JSON.parse(JSON.stringify(state))`
 * is the state. Messages that are only handed on are kept as the base64 of their bytes, with fields we do not know.
 */
export type SkaffoldState = {
  readonly foldVersion: typeof foldVersion;
  readonly v1: V1Facts;
  readonly v2: V2Facts;
  /** What v2 told of v1's state and v1 has not come to yet. */
  readonly hints: Hints;
  /** Control calls that were sent and not answered yet, oldest first. */
  readonly calls: readonly PendingCall[];
  readonly broken: Broken;
};

/**
 * APIs whose stream broke, and Skaffold's own last answer about their state since then: null where it has given none yet.
 * The answer is what is served; what the stream told stays as it was at the break, for the events that may still come.
 */
export type Broken = { readonly [api in "v1" | "v2"]?: Base64 | null };

/**
 * A field of v1's state and when v1 wrote it last. `null` in a field's place: never written, or reset since.
 * `loop` is that of the runner, 0 before the first; `at` counts v1's writes, so that a control call can tell what stood
 * there before it.
 */
export type Written<T> = { readonly value: T; readonly loop: number; readonly at: number };

/** A phase that starts by resetting what earlier loops left. */
export type ResettingPhase = "build" | "test" | "deploy";

export type Flags = { readonly [phase in "build" | "sync" | "deploy"]: boolean | null };

export const unknownFlags: Flags = { build: null, sync: null, deploy: null };

export type V1Facts = {
  /** Configuration loads told; 0: none yet. */
  readonly runner: number;
  /** Dev loops of this runner. */
  readonly loop: number;
  /** Whether loops are told at all: before Skaffold 1.8, and in one-shot commands, they are not. */
  readonly loopsTold: boolean;
  readonly writes: number;
  readonly current: LoopFacts;
  /** The highest loop that has reset its state to build. */
  readonly resetForBuild: number;
  readonly flags: Flags;
  /** Those of the command line, which every runner after the first begins with. */
  readonly flagsAtStart: Flags;
  readonly metadata: Base64 | null;
  readonly described: Described | null;

  /** Also those that are "Not Started" (null) but were seen. */
  readonly artifacts: Table<Written<string> | null>;
  readonly buildCode: Written<number> | null;
  readonly test: Written<string> | null;
  readonly testCode: Written<number> | null;
  readonly deploy: Written<string> | null;
  readonly deployCode: Written<number> | null;
  readonly check: Written<string> | null;
  readonly checkCode: Written<number> | null;
  readonly resources: Table<Written<string>>;
  readonly sync: (Written<string> & { readonly late: boolean }) | null;
  readonly ports: Table<Written<Base64>>;
  readonly debuggers: readonly (Written<Base64> & { readonly container: string })[];
};

/** What v1 has told of its current loop, apart from what came in through Handle. */
export type LoopFacts = {
  readonly synced: boolean;
  readonly built: boolean;
  readonly tested: boolean;
  readonly deployed: boolean;
  readonly failed: boolean;
  readonly ended: boolean;
  /** Code of the first build that failed. */
  readonly buildError: number | null;
};

export type V2Facts = {
  readonly runner: number;
  readonly loop: number;
  readonly runId: string;
  /** Whether the last event was the start of a dev loop, which is followed by a repeated metaEvent. */
  readonly loopJustStarted: boolean;
  /** Any loop of any runner. */
  readonly loopsTold: boolean;
  readonly writes: number;
  readonly flags: Flags;
  readonly metadata: Base64 | null;
  readonly described: Described | null;

  readonly artifacts: Table<string>;
  readonly test: string | null;
  readonly render: string | null;
  readonly deploy: string | null;
  readonly verify: string | null;
  readonly exec: string | null;
  readonly sync: string | null;
  readonly resources: Table<string>;
  readonly ports: Table<Base64>;
  readonly debuggers: readonly { readonly value: Base64; readonly container: string }[];
};

/** What the upstream's own GetState said besides statuses. */
export type Described = {
  /** The runner that the event stream was at. 0: the stream had told none yet, it is that of a runner still to come. */
  readonly runner: number;
  readonly artifacts: readonly string[];
  readonly metadata: Base64 | null;
  /** Members of the State message that this version of Skaffold does not have. */
  readonly lacks: readonly string[];
};

export type Hints = {
  readonly resets: readonly { readonly runner: number; readonly loop: number; readonly phase: ResettingPhase }[];
  readonly artifacts: readonly { readonly runner: number; readonly names: readonly string[] }[];
};

export type PendingCall = {
  readonly call: string;
  readonly method: string;
  readonly request: Base64;
  /** v1's `writes` when the call was sent. */
  readonly at: number;
};

export type Table<T> = { readonly [name: string]: T };

const noLoop: LoopFacts = {
  synced: false,
  built: false,
  tested: false,
  deployed: false,
  failed: false,
  ended: false,
  buildError: null,
};

/** v1 as a new runner finds it. */
export const freshV1 = {
  loop: 0,
  loopsTold: false,
  current: noLoop,
  resetForBuild: 0,
  artifacts: {},
  buildCode: null,
  test: null,
  testCode: null,
  deploy: null,
  deployCode: null,
  check: null,
  checkCode: null,
  resources: {},
  sync: null,
  ports: {},
  debuggers: [],
} as const satisfies Partial<V1Facts>;

/** v2 as a new runner, and every dev loop, finds it. */
export const freshV2 = {
  artifacts: {},
  test: null,
  render: null,
  deploy: null,
  verify: null,
  exec: null,
  sync: null,
  resources: {},
  ports: {},
  debuggers: [],
} as const satisfies Partial<V2Facts>;

export const initialState: SkaffoldState = {
  foldVersion,
  v1: {
    runner: 0,
    writes: 0,
    flags: unknownFlags,
    flagsAtStart: unknownFlags,
    metadata: null,
    described: null,
    ...freshV1,
  },
  v2: {
    runner: 0,
    loop: 0,
    runId: "",
    loopJustStarted: false,
    loopsTold: false,
    writes: 0,
    flags: unknownFlags,
    metadata: null,
    described: null,
    ...freshV2,
  },
  hints: { resets: [], artifacts: [] },
  calls: [],
  broken: {},
};
