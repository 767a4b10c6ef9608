import type { Event } from "@tapedeck/proto/tapedeck/v1/event";

/** Whether v2 of Skaffold reports by this event that a dev loop is over. v1 reports the same by a fact, `loop.failed` or `loop.succeeded`. */
export function endsLoopOnV2({ kind, detail, injected }: Pick<Event, "kind" | "detail" | "injected">): boolean {
  if (kind !== "mirror.received" || detail?.$case !== "mirror" || injected) return false;
  const { what, task_id, status } = detail.value;
  return what === "taskEvent" && /^DevLoop\b/.test(task_id) && status !== "InProgress";
}
