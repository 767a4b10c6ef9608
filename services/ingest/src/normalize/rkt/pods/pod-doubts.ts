import { AppState, type Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { acceptPod } from "@tapedeck/shared/rkt/accept";
import { exitedApps } from "./app-runs.ts";
import { type Last, podTable, stateOf } from "./pod-table.ts";

/**
 * Changes that one answer alone does not prove, because rkt reads a pod's files while the pod moves on
 * (docs/upstreams/rkt.md#races):
 *
 * - aborted: a preparation that is renamed at that moment appears to be given up;
 * - starting: a pod without its start time has not written its pid file yet;
 * - dead: a running pod with apps that exited has died before it wrote its pid, or is about to report so;
 * - exit code: a zero in a pod that is seen ended for the first time may be one that could not be read.
 */
export type Doubt = "aborted" | "starting" | "dead" | "exit code";

export function doubtOf(last: Last, before: Pod | undefined, listed: Pod): Doubt | undefined {
  const to = stateOf(listed);
  if (to === undefined || podTable[last][to] === undefined) return undefined;
  if (to === "ABORTED_PREPARE" && last !== to) return "aborted";
  if (to === "RUNNING") {
    if (listed.apps.some(({ state }) => state === AppState.APP_STATE_EXITED)) return "dead";
    return last !== to && (listed.started_at <= 0n || listed.pid <= 0) ? "starting" : undefined;
  }
  if (to !== "EXITED" || last === to) return undefined;
  const now = acceptPod(before, listed);
  // A pod that never started has no exits to report.
  if (last !== "RUNNING" && now.started_at <= 0n) return undefined;
  const exits = exitedApps({ last, before, to, now });
  return exits.some(({ code }) => code === 0) ? "exit code" : undefined;
}

/** The answer about a pod that was moved between two reads: its manifest was present, and the rest of it was not. */
export function isFalseAbort({ state, apps }: Pod): boolean {
  return state === PodState.POD_STATE_ABORTED_PREPARE && apps.some(({ exit_code }) => exit_code === -1);
}
