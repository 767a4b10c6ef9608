import { isLoopback } from "@tapedeck/shared/service/loopback";
import { delay } from "@tapedeck/shared/sync/delay";
import { leftEventLogs } from "@tapedeck/tap/skaffold/event-log/left-event-logs";
import { type OrphanedSpill, orphanedSpills } from "@tapedeck/tap/spill/spill-folder";
import type { GrpcTarget } from "../grpc-target.ts";
import { pushWaiting } from "../recording/waiting.ts";

export type TakeWaitingSpills = {
  /** Where taps leave their spills. */
  readonly home: string;
  /** The gateway's gRPC, "host:port": what is meant for it is taken. */
  readonly to: string;
  /** Target of the push. */
  readonly target: GrpcTarget;
  readonly printLine: (line: string) => void;
  readonly signal: AbortSignal;
};

const pollMs = 3_000;
/** One at a time, and none for longer than this without a step forward: the source may just be recorded by another tap. */
const timeoutMs = 20_000;

/** Pushes what taps that are gone could not push to this machine's Tapedeck, in the order in which they began; again and again. */
export async function takeWaitingSpills({ home, to, target, printLine, signal }: TakeWaitingSpills): Promise<void> {
  const onTaken = ({ hello }: OrphanedSpill) =>
    printLine(`delivered the waiting recording of ${hello.developer}/${hello.project}`);
  while (!signal.aborted) {
    await pushWaiting({ home, target, isMeant: isMeantFor(to), timeoutMs, signal, onTaken });
    await delay(pollMs, signal);
  }
}

/**
 * How many recordings wait there: all, or those that this machine's Tapedeck at that address takes. A killed tap may have left
 * an event log file, or a spill, or both.
 */
export async function countWaiting(home: string, to?: string): Promise<number> {
  const waiting = [...(await orphanedSpills(home)), ...(await leftEventLogs(home))];
  const taken = to === undefined ? waiting : waiting.filter(isMeantFor(to));
  return new Set(taken.map(({ hello }) => hello.tap)).size;
}

/** Compares addresses, with every form of loopback equal. A spill without a target belongs to this machine. */
function isMeantFor(own: string): (waiting: Pick<OrphanedSpill, "to">) => boolean {
  return ({ to }) => {
    const [, host = "", port] = /^(.*):(\d+)$/.exec(to ?? "") ?? [];
    return to === undefined || to === own || (isLoopback(host) && own.endsWith(`:${port}`));
  };
}
