import { takeLeftEventLogs } from "@tapedeck/tap/skaffold/event-log/left-event-logs";
import { type OrphanedSpill, orphanedSpills } from "@tapedeck/tap/spill/spill-folder";
import { type GrpcTarget, grpcTarget } from "../../grpc-target.ts";
import { pushWaiting } from "../../recording/waiting.ts";

export type PushAllThatWaits = {
  readonly home: string;
  readonly target: GrpcTarget;
  /** The address that the recordings are meant for, if it differs from the target's. */
  readonly from: true | string;
  readonly signal: AbortSignal;
  readonly printLine: (line: string) => void;
};

/** For each step forward of one of them. */
const timeoutMs = 30_000;

/** Pushes what waits for a Tapedeck, and reports each, and what waits for others. True if nothing is left of it. */
export async function pushAllThatWaits({ home, target, from, signal, printLine }: PushAllThatWaits): Promise<boolean> {
  // Only its name matters, and it may be gone for good.
  const name =
    from === true ? target.name : grpcTarget(from, { HOME: process.env.HOME, TAPEDECK_INSECURE: "true" }).name;
  // An address as it was reported for waiting recordings matches too.
  const isMeant = ({ to }: OrphanedSpill) => to === name || to === from;
  await takeLeftEventLogs(home, signal);
  const before = (await orphanedSpills(home)).filter(isMeant);
  if (before.length === 0) printLine(`there are no undelivered recordings for ${name}`);
  await pushWaiting({
    home,
    target,
    isMeant,
    timeoutMs,
    signal,
    onTaken: ({ hello }) => printLine(`delivered the waiting recording of ${hello.developer}/${hello.project}`),
    onLeft: ({ hello, dir }, failure) =>
      printLine(
        `${hello.developer}/${hello.project} still waits in ${dir}: ${failure?.why ?? "not all of it was accepted in time"}`,
      ),
  });
  const left = await orphanedSpills(home);
  for (const [to, count] of others(left, name)) printLine(`${count} more ${count === 1 ? "waits" : "wait"} for ${to}`);
  return left.filter(isMeant).length === 0;
}

function others(orphans: readonly OrphanedSpill[], name: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { to = "this machine's Tapedeck" } of orphans) {
    if (to !== name) counts.set(to, (counts.get(to) ?? 0) + 1);
  }
  return counts;
}
