import { VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { backoff, pause } from "@tapedeck/shared/sync/delay";
import { turns } from "@tapedeck/shared/sync/semaphore";
import { ulid } from "ulid";
import type { Connection } from "./connection.ts";
import { fieldsOf } from "./message-fields.ts";
import type { Seen } from "./poll-jobs.ts";
import type { TappedJobs } from "./tapped-jobs.ts";

export type JobFollowing = {
  readonly connection: Pick<Connection, "signal" | "open">;
  readonly known: TappedJobs;
  readonly emit: (seen: Seen) => void;
  /** A job that was followed while it ran is complete: others may have come. */
  readonly onComplete: () => void;
};

export type JobFollower = {
  /** Follows the jobs that are known and not followed yet. */
  readonly follow: () => void;
  /** Resolves when all streams that there are have ended. */
  readonly ended: () => Promise<void>;
};

/** Each gives its whole output, and all of them belong to the past. */
const finishedAtOnce = 8;
/** After streams of one job that were lost one right after the other. */
const lostMs = { first: 100, longest: 5_000 };
/** A stream of a finished job that gave not all is opened once more, no more often. */
const mostFailures = 2;

/**
 * Follows each job from when it is seen until all that it says is told. The server drops live output that it could not
 * give before the job was over; a stream that is opened after that gives all of it again.
 */
export function followJobs({ connection, known, emit, onComplete }: JobFollowing): JobFollower {
  const { signal } = connection;
  const slots = turns(finishedAtOnce);
  const following = new Map<string, Promise<void>>();

  function follow(): void {
    if (signal.aborted) return;
    for (const { id, isFinished } of known.all()) {
      if (following.has(id) || known.isTold(id)) continue;
      const done = isFinished ? followInTurn(id) : followOne(id);
      following.set(
        id,
        done.finally(() => following.delete(id)),
      );
    }
  }

  async function followInTurn(id: string): Promise<void> {
    const end = await slots.take(signal);
    if (end === undefined) return;
    await followOne(id).finally(end);
  }

  async function followOne(id: string): Promise<void> {
    const afterLoss = backoff(lostMs.first, lostMs.longest);
    for (let completes = 0, failures = 0, losses = 0; !signal.aborted; ) {
      const { isComplete, isReplay } = await openOnce(id);
      if (isComplete && (isReplay || completes++ > 0)) return known.setTold(id);
      if (signal.aborted) return;
      if (isComplete) {
        onComplete();
      } else if (known.get(id)?.isFinished ?? true) {
        if (++failures === mostFailures) return known.setTold(id);
      } else if (losses++ > 0) {
        await pause(afterLoss.next(), signal);
      }
    }
  }

  /** Resolves when all that came has been told. `isReplay`: the job was over before. */
  async function openOnce(job: string): Promise<{ readonly isComplete: boolean; readonly isReplay: boolean }> {
    const stream = ulid();
    const opened = connection.open(path, requestSerialize({ job_id: job }));
    let before = 0n;
    let isComplete = false;
    let isReplay: boolean | undefined;
    opened.on("data", (bytes: Buffer) => {
      emit({ $case: "streamed", value: { job, bytes, stream, before } });
      const told = readMessage(bytes);
      before += BigInt(told.events);
      isComplete ||= told.isComplete;
      const said = told.job && known.see(told.job);
      isReplay ??= said?.isFinished;
    });
    const taken = new Promise((resolve) => opened.on("end", resolve));
    const ended = new Promise<{ code: number; details: string }>((resolve) => opened.on("status", resolve));
    const { code, details } = await ended;
    await taken;
    emit({ $case: "stream_ended", value: { job, stream, code, message: details } });
    return { isComplete, isReplay: isReplay ?? false };
  }

  return {
    follow,
    ended: async () => void (await Promise.all(following.values())),
  };
}

const { path, requestSerialize } = VagrantService.getJobStream;

/** Of GetJobStreamResponse, and of what it holds. */
const fields = { state: 2, stateJob: 3, terminal: 3, terminalEvents: 1, complete: 5 };

type ReadMessage = {
  /** So many of the terminal. */
  readonly events: number;
  readonly isComplete: boolean;
  readonly job: Buffer | undefined;
};

/** What the tap has to know of a message; nothing is known of bytes that are none. */
export function readMessage(bytes: Uint8Array): ReadMessage {
  try {
    const all = (from: readonly Uint8Array[], field: number) => from.flatMap((message) => fieldsOf(message, field));
    return {
      events: all(fieldsOf(bytes, fields.terminal), fields.terminalEvents).length,
      isComplete: fieldsOf(bytes, fields.complete).length > 0,
      job: all(fieldsOf(bytes, fields.state), fields.stateJob).at(-1),
    };
  } catch {
    return { events: 0, isComplete: false, job: undefined };
  }
}
