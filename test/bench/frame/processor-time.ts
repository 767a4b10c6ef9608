import { readdirSync, readFileSync } from "node:fs";

/** Linux counts in hundredths of a second for every program, whatever the kernel's own ticks are. */
const msPerTick = 10;

/** Processor time in ms by process name. Each includes the processes that it started (Postgres has one per connection). */
export type ProcessorTimes = Readonly<Record<string, number>>;

/** Process ids by the name under which a table shows them. */
export type Processes = Readonly<Record<string, number>>;

export function readProcessorTimes(processes: Processes): ProcessorTimes {
  return Object.fromEntries(Object.entries(processes).map(([name, pid]) => [name, ofTree(pid)]));
}

export function since(before: ProcessorTimes, now: ProcessorTimes): ProcessorTimes {
  return Object.fromEntries(Object.entries(now).map(([name, ms]) => [name, ms - (before[name] ?? 0)]));
}

/** What all programs of the machine have used since it was started, in ms. */
export function machineMs(): number {
  // user, nice, system, then idle and waiting for disks, then interrupts.
  const [user = 0, nice = 0, system = 0, , , hard = 0, soft = 0] = readOrEmpty("/proc/stat")
    .split("\n", 1)
    .flatMap((line) => line.split(/\s+/).slice(1).map(Number));
  return (user + nice + system + hard + soft) * msPerTick;
}

/** Processor time of this process and of all that it has started, in ms. */
export const ownMs = (): number => ofTree(process.pid);

/** Resident memory in MiB; 0 for a process that is gone. */
export function residentMiB(pid: number): number {
  const kib = /^VmRSS:\s+(\d+)/m.exec(readOrEmpty(`/proc/${pid}/status`))?.[1];
  return Number(kib ?? 0) / 1_024;
}

/** Memory in MiB of a process and of all that it has started; what several of them share counts once. */
export function proportionalMiB(pid: number): number {
  const kib = (each: number) => Number(/^Pss:\s+(\d+)/m.exec(readOrEmpty(`/proc/${each}/smaps_rollup`))?.[1] ?? 0);
  return treeOf(pid).reduce((sum, each) => sum + kib(each), 0) / 1_024;
}

/** A child that has ended counts through its parent, which has waited for it. */
function ofTree(pid: number): number {
  return treeOf(pid).reduce((sum, each) => sum + ofProcess(each), 0);
}

/** A process and all that it has started and that still run. */
export function treeOf(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)];
}

function childrenOf(pid: number): number[] {
  return threadsOf(pid).flatMap((thread) =>
    readOrEmpty(`/proc/${pid}/task/${thread}/children`).split(" ").filter(Boolean).map(Number),
  );
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function ofProcess(pid: number): number {
  const stat = readOrEmpty(`/proc/${pid}/stat`);
  // The program's name is in parentheses and may hold blanks. utime, stime, cutime and cstime are fields 14 to 17.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * msPerTick, 0);
}

/** A process may end between two reads. */
function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
