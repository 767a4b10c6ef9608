import { type Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";

/**
 * One stage of a pod that becomes known, in the order of its facts; in brackets: concluded, since no answer showed the
 * state itself. P prepared, A preparation aborted, S started, s its apps started, x its apps exited, X exited; and
 * collected, once in a pod's life, by the phase that was observed: marked, deleting, removed, never-ran.
 */
export type PodStep = PodStepName | `(${PodStepName})`;
type PodStepName = "P" | "A" | "S" | "s" | "x" | "X" | PodPhase;
export type PodPhase = "marked" | "deleting" | "removed" | "never-ran";

/** UNDEFINED is how rkt answers a pod that is being deleted. */
export type PodStatus = "PREPARING" | "PREPARED" | "RUNNING" | "ABORTED_PREPARE" | "EXITED" | "GARBAGE" | "UNDEFINED";
export type Last = PodStatus | "new";
export type PodNow = PodStatus | "absent";

/** A pod never goes back: an answer to that effect is wrong, and the state stays, unless the host insists. */
const never = undefined;

const unstarted = {
  PREPARING: [],
  PREPARED: ["P"],
  RUNNING: ["(P)", "S", "s", "x"],
  ABORTED_PREPARE: ["A"],
  EXITED: ["(P)", "(S)", "(s)", "x", "X"],
  GARBAGE: ["(P)", "(S)", "(s)", "(x)", "(X)", "marked"],
  UNDEFINED: ["(P)", "(S)", "(s)", "(x)", "(X)", "deleting"],
} as const;

/**
 * By the state that was known last and the one observed now (or a certain absence): the stages that follow. `s` in a pod
 * that was running already: apps that came or were restarted; `x` in one that still runs: apps with a code.
 */
export const podTable: Readonly<Record<Last, Readonly<Record<PodNow, readonly PodStep[] | undefined>>>> = {
  new: { ...unstarted, absent: [] },
  PREPARING: { ...unstarted, absent: ["(removed)"] },
  PREPARED: {
    PREPARING: never,
    PREPARED: [],
    RUNNING: ["S", "s", "x"],
    ABORTED_PREPARE: never,
    EXITED: ["(S)", "(s)", "x", "X"],
    GARBAGE: ["(S)", "(s)", "(x)", "(X)", "marked"],
    UNDEFINED: ["(S)", "(s)", "(x)", "(X)", "deleting"],
    absent: ["never-ran"],
  },
  RUNNING: {
    PREPARING: never,
    PREPARED: never,
    RUNNING: ["s", "x"],
    ABORTED_PREPARE: never,
    EXITED: ["s", "x", "X"],
    GARBAGE: ["(s)", "(x)", "(X)", "marked"],
    UNDEFINED: ["(x)", "(X)", "deleting"],
    absent: ["(x)", "(X)", "removed"],
  },
  // The preparation was not aborted after all, if the pod proceeds.
  ABORTED_PREPARE: { ...unstarted, PREPARING: never, ABORTED_PREPARE: [], absent: ["never-ran"] },
  EXITED: {
    PREPARING: never,
    PREPARED: never,
    RUNNING: never,
    ABORTED_PREPARE: never,
    EXITED: [],
    GARBAGE: ["marked"],
    UNDEFINED: ["deleting"],
    absent: ["removed"],
  },
  GARBAGE: {
    PREPARING: never,
    PREPARED: never,
    RUNNING: never,
    ABORTED_PREPARE: never,
    EXITED: never,
    GARBAGE: [],
    UNDEFINED: [],
    absent: [],
  },
  UNDEFINED: {
    PREPARING: never,
    PREPARED: never,
    RUNNING: never,
    ABORTED_PREPARE: never,
    EXITED: never,
    GARBAGE: [],
    UNDEFINED: [],
    absent: [],
  },
};

/** Undefined for a state that came after this description of the API. */
export function stateOf({ state }: Pod): PodStatus | undefined {
  switch (state) {
    case PodState.POD_STATE_EMBRYO:
    case PodState.POD_STATE_PREPARING:
      return "PREPARING";
    case PodState.POD_STATE_PREPARED:
      return "PREPARED";
    case PodState.POD_STATE_RUNNING:
      return "RUNNING";
    case PodState.POD_STATE_ABORTED_PREPARE:
      return "ABORTED_PREPARE";
    case PodState.POD_STATE_EXITED:
      return "EXITED";
    case PodState.POD_STATE_GARBAGE:
      return "GARBAGE";
    case PodState.POD_STATE_UNDEFINED:
    case PodState.POD_STATE_DELETING:
      return "UNDEFINED";
    default:
      return undefined;
  }
}
