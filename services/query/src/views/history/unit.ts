import { sql } from "kysely";
import type { OperationRow } from "../../db/schema.ts";

/** The kinds of operations that are units of work by themselves, as sessions are. */
export const unitKinds = ["loop", "command", "job", "pod"] as const;

type Named = Pick<OperationRow, "kind" | "subject" | "instance" | "runner" | "loop">;

/** The unit of a session. */
export const wholeSession = "";

/** The unit that an operation is, or belongs to: a loop, a job with its command, a pod with its apps, else the session. */
export function unitOf({ kind, subject, instance, runner, loop }: Named): string {
  if (loop > 0) return `${runner}.${loop}`;
  if (kind === "command") return `job ${instance}`;
  if (kind === "job") return `job ${subject}`;
  if (kind === "pod") return `pod ${subject}`;
  if (kind === "app") return `pod ${subject.split("/", 1)[0]}`;
  return wholeSession;
}

/** The unit that an event `e` of text belongs to, as `unitOf` has it. */
export const unitOfText = sql`case when e.loop > 0 then e.runner || '.' || e.loop
  when e.kind = 'terminal.written' then 'job ' || e.subject
  when e.upstream = 'rkt' then 'pod ' || coalesce(e.detail ->> 'pod', '') else '' end`;
