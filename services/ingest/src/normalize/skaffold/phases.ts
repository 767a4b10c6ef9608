import type { Event, OperationRef } from "@tapedeck/proto/tapedeck/v1/event";
import { ownValue } from "@tapedeck/shared/own-value";
import type { Fact } from "../fact.ts";
import { canceled, failed, failure, name, summary } from "../facts.ts";
import { isContextCanceled } from "./loop-steps.ts";

const texts = {
  init: "init",
  build: "build",
  test: "tests",
  render: "render",
  deploy: "deploy",
  check: "status check",
} as const;

/** A phase of Skaffold that can fail although none of its steps does. */
export type Phase = keyof typeof texts;

/**
 * The end of a phase that failed as a whole: a tag could not be generated, a folder is missing, the runner could not be
 * made. It has no subject: no artifact of its own failed.
 */
export function failedPhase(
  phase: Phase,
  error: Event["error"],
  { runner, loop }: Pick<OperationRef, "runner" | "loop">,
  task = "",
): Fact {
  // No other step has failed that could have caused this: the user ended Skaffold.
  const isCanceled = phase !== "init" && phase !== "check" && isContextCanceled(error);
  const status = isCanceled ? "Canceled" : "Failed";
  const detail: Fact["detail"] =
    phase === "build"
      ? { $case: "build", value: { artifact: "", host_platform: "", target_platforms: "", cache_hit: false } }
      : { $case: "phase", value: { name: phase, task_id: name(task), status } };
  const rest = { operation: { kind: phase, subject: "", runner, loop }, detail };
  const what = texts[phase];
  if (!isCanceled) return { kind: `${phase}.failed`, ...failed(error), summary: failure(what, error), ...rest };
  return {
    kind: `${phase}.canceled`,
    ...canceled,
    ...(error && { error }),
    summary: summary(`${what} canceled`),
    ...rest,
  };
}

/** The phases by the first words of their error codes. The code of a failed sync is not among them: a sync is tried again. */
const byCode: Readonly<Record<string, Phase>> = {
  CONFIG: "init",
  INIT: "init",
  DEVINIT: "init",
  BUILD: "build",
  TEST: "test",
  RENDER: "render",
  DEPLOY: "deploy",
  STATUSCHECK: "check",
};

/** The phase in which Skaffold gives this error code; undefined for one that leaves it open, such as UNKNOWN_ERROR. */
export function phaseOfCode(code: string): Phase | undefined {
  // The first loop could not prepare syncs, so no sync has failed.
  if (code === "SYNC_INIT_ERROR") return "init";
  return ownValue(byCode, code.split("_", 1)[0] ?? "");
}
