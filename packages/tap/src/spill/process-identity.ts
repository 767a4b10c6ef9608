import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * Identifies a process by its id and its start, because process ids are used again: after a reboot, or when all have been
 * used. `started` is only compared, and is absent where the system does not provide it.
 */
export type ProcessIdentity = { readonly pid: number; readonly started?: string | undefined };

let own: ProcessIdentity | undefined;

export function thisProcess(): ProcessIdentity {
  own ??= identityOf(process.pid);
  return own;
}

export function identityOf(pid: number): ProcessIdentity {
  const started = startOf(pid);
  return { pid, ...(started !== undefined && { started }) };
}

/** True while this very process lives. If its start isn't known, true while any process has its id. */
export function isAlive({ pid, started }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  if (started === undefined) return true;
  const now = startOf(pid);
  return now === undefined || now === started;
}

/** On Linux: the boot id and the clock ticks since the boot. Elsewhere the output of `ps`. */
function startOf(pid: number): string | undefined {
  if (process.platform === "win32") return undefined;
  if (process.platform !== "linux") return printedStart(pid);
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name of the program, field 2, may contain blanks and parentheses.
    const ticks = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[startTimeField - 3];
    return ticks === undefined ? undefined : `${boot} ${ticks}`;
  } catch {
    return undefined;
  }
}

/** The field number in proc(5), which counts from 1. */
const startTimeField = 22;

function printedStart(pid: number): string | undefined {
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  const { stdout } = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8", env, timeout: 5_000 });
  return stdout?.trim() || undefined;
}
