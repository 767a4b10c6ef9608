import { type Audit, severalCallers } from "./audit-log.ts";

export type AuditBudget = {
  /** Entries of one caller in one window. */
  readonly perCaller: number;
  readonly windowMs: number;
};

const defaultBudget: AuditBudget = { perCaller: 60, windowMs: 60_000 };

/**
 * The same, with a bound for actions that a caller may repeat at will: the audit log drops its oldest entries when it
 * is full, and no caller may displace those of others. Entries left out in a window are counted in one entry of the
 * next.
 */
export function boundedAudit(audit: Audit, { perCaller, windowMs }: AuditBudget = defaultBudget): Audit {
  const written = new Map<string, number>();
  let end = 0;
  return (entry) => {
    const now = Date.now();
    if (now >= end) {
      end = now + windowMs;
      const leftOut = [...written.values()].reduce((sum, count) => sum + Math.max(0, count - perCaller), 0);
      if (leftOut > 0) audit({ action: entry.action, ...severalCallers, workspace: "-", about: { leftOut } });
      written.clear();
    }
    const caller = `${entry.workspace} ${entry.kind} ${entry.by ?? entry.who}`;
    const count = (written.get(caller) ?? 0) + 1;
    written.set(caller, count);
    if (count <= perCaller) audit(entry);
  };
}
