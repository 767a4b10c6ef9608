import type { Base64 } from "../states/base64.ts";

/**
 * Raised whenever the same events fold to another state, or the state has another shape: snapshots of another version
 * are not used.
 */
export const foldVersion = 1;

/**
 * Both of Skaffold's states from the events of one session. Plain JSON: `JSON.parse(JSON.stringify(state))` is the
 * state. Messages that are only forwarded are kept as the base64 of their bytes, with unknown fields.
 */
export type SkaffoldState = {
  readonly foldVersion: typeof foldVersion;
  readonly v1: V1Facts;
  readonly v2: V2Facts;
  /** What v2 reported about a part of v1's stream that v1 has not reached yet. */
  readonly hints: Hints;
  /** Control calls without an answer so far, oldest first. */
  readonly calls: readonly PendingCall[];
  readonly broken: Broken;
};

/**
 * APIs whose stream broke, and Skaffold's own last answer about their state since then; null: no answer yet. ReadState serves
 * the answer. The state that the stream reported stays as it was at the break, for the events that may still come.
 */
export type Broken = { readonly [api in "v1" | "v2"]?: Base64 | null };

/**
 * A field of v1's state and when v1 last wrote it. `null` instead: never written, or reset since. `loop` is the runner's
 * loop, 0 before the first. `at` counts v1's writes, which shows whether a field was written before a control call.
 */
export type Written<T> = { readonly value: T; readonly loop: number; readonly at: number };

/** A phase that begins by resetting the results of earlier loops. */
export type ResettingPhase = "build" | "test" | "deploy";

export type Flags = { readonly [phase in "build" | "sync" | "deploy"]: boolean | null };

const unknownFlags: Flags = { build: null, sync: null, deploy: null };

export type V1Facts = {
  /** The number of reported configuration loads. */
  readonly runner: number;
  /** The number of dev loops of this runner. */
  readonly loop: number;
  /** Whether loops are reported at all. Skaffold before 1.8 and one-shot commands do not report them. */
  readonly reportsLoops: boolean;
  readonly writes: number;
  readonly current: LoopFacts;
  /** The highest loop that has reset its state to build. */
  readonly resetForBuild: number;
  readonly flags: Flags;
  /** The command line's flags, with which every runner after the first begins. */
  readonly flagsAtStart: Flags;
  readonly metadata: Base64 | null;
  readonly described: Described | null;

  /** With artifacts that were reported and are "Not Started" again (null). */
  readonly artifacts: ByName<Written<string> | null>;
  readonly buildCode: Written<number> | null;
  readonly test: Written<string> | null;
  readonly testCode: Written<number> | null;
  readonly deploy: Written<string> | null;
  readonly deployCode: Written<number> | null;
  readonly check: Written<string> | null;
  readonly checkCode: Written<number> | null;
  readonly resources: ByName<Written<string>>;
  readonly sync: (Written<string> & { readonly late: boolean }) | null;
  readonly ports: ByName<Written<Base64>>;
  readonly debuggers: readonly (Written<Base64> & { readonly container: string })[];
};

/** What v1 has reported about its current loop, except what came through Handle. */
export type LoopFacts = {
  readonly synced: boolean;
  readonly built: boolean;
  readonly tested: boolean;
  readonly deployed: boolean;
  readonly failed: boolean;
  readonly ended: boolean;
  /** The error code of the first failed build. */
  readonly buildError: number | null;
};

export type V2Facts = {
  readonly runner: number;
  readonly loop: number;
  readonly runId: string;
  /** Whether the last event was the start of a dev loop, which is followed by a repeated metaEvent. */
  readonly loopJustStarted: boolean;
  /** Whether any loop of any runner was reported. */
  readonly reportsLoops: boolean;
  readonly writes: number;
  readonly flags: Flags;
  readonly metadata: Base64 | null;
  readonly described: Described | null;

  readonly artifacts: ByName<string>;
  readonly test: string | null;
  readonly render: string | null;
  readonly deploy: string | null;
  readonly verify: string | null;
  readonly exec: string | null;
  readonly sync: string | null;
  readonly resources: ByName<string>;
  readonly ports: ByName<Base64>;
  readonly debuggers: readonly { readonly value: Base64; readonly container: string }[];
};

/** The upstream's own GetState answer besides statuses. */
export type Described = {
  /** The runner that the event stream had reached. 0: none yet, so the answer is about the next one. */
  readonly runner: number;
  readonly artifacts: readonly string[];
  readonly metadata: Base64 | null;
  /** The members of the State message that this version of Skaffold lacks. */
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

export type ByName<T> = { readonly [name: string]: T };

const noLoop: LoopFacts = {
  synced: false,
  built: false,
  tested: false,
  deployed: false,
  failed: false,
  ended: false,
  buildError: null,
};

/** v1 at the start of a runner. */
export const freshV1 = {
  loop: 0,
  reportsLoops: false,
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

/** v2 at the start of a runner and of every dev loop. */
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
    reportsLoops: false,
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
