import { VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { fieldsOf } from "@tapedeck/shared/descriptors/message-fields";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { Semaphore } from "@tapedeck/shared/sync/semaphore";
import { ulid } from "ulid";
import type { PolledConnection } from "../polling/connection.ts";
import type { EmitResult } from "../polling/poll-result.ts";
import type { TappedJobs } from "./tapped-jobs.ts";

export type JobFollowerOptions = {
  readonly connection: Pick<PolledConnection, "signal" | "open">;
  readonly known: TappedJobs;
  readonly emit: EmitResult;
  /** Called when a job that was followed while it ran is complete: others may have come. */
  readonly onComplete: () => void;
};

/** Streams of finished jobs that are read at the same time. Each repeats its whole output, and none is urgent. */
const finishedAtOnce = 8;
/** Between streams of one job that are lost one after the other. */
const lostMs = { first: 100, longest: 5_000 };
/** A stream of a finished job that ends early is opened again until it has failed this often. */
const maxFailures = 2;

/**
 * Follows each job from its first appearance until all of its output is emitted. The server drops live output that it
 * could not deliver before the job ended. A stream that is opened after that repeats all of it.
 */
export class JobFollower {
  readonly #options: JobFollowerOptions;
  readonly #finishedSlots = new Semaphore(finishedAtOnce);
  readonly #following = new Map<string, Promise<void>>();

  constructor(options: JobFollowerOptions) {
    this.#options = options;
  }

  /** Follows the known jobs that are not followed yet. */
  followKnown(): void {
    const { connection, known } = this.#options;
    if (connection.signal.aborted) return;
    for (const { id, isFinished } of known.all()) {
      if (this.#following.has(id) || known.isRecorded(id)) continue;
      const done = isFinished ? this.#followFinished(id) : this.#follow(id);
      this.#following.set(
        id,
        done.finally(() => this.#following.delete(id)),
      );
    }
  }

  /** Resolves when everything that a finished job has written was emitted, as far as the server gives it. */
  async done(id: string): Promise<void> {
    this.followKnown();
    await this.#following.get(id);
  }

  /** Resolves when all open streams have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#following.values());
  }

  async #followFinished(id: string): Promise<void> {
    const release = await this.#finishedSlots.acquire(this.#options.connection.signal);
    if (release === undefined) return;
    await this.#follow(id).finally(release);
  }

  async #follow(id: string): Promise<void> {
    const { known, onComplete } = this.#options;
    const { signal } = this.#options.connection;
    const afterLoss = backoff(lostMs.first, lostMs.longest);
    for (let completes = 0, failures = 0, losses = 0; !signal.aborted; ) {
      const { isComplete, isReplay } = await this.#readStream(id);
      if (isComplete && (isReplay || completes++ > 0)) return known.setRecorded(id);
      if (signal.aborted) return;
      if (isComplete) {
        onComplete();
      } else if (known.get(id)?.isFinished ?? true) {
        if (++failures === maxFailures) return known.setRecorded(id);
      } else if (losses++ > 0) {
        await delay(afterLoss.next(), signal);
      }
    }
  }

  /** Resolves after every message was emitted. `isReplay`: the job had finished before. */
  async #readStream(job: string): Promise<{ readonly isComplete: boolean; readonly isReplay: boolean }> {
    const { connection, known, emit } = this.#options;
    const stream = ulid();
    const call = connection.open(path, requestSerialize({ job_id: job }));
    let before = 0n;
    let isComplete = false;
    let isReplay: boolean | undefined;
    call.on("data", (bytes: Buffer) => {
      emit({ $case: "streamed", value: { job, bytes, stream, before } });
      const message = readMessage(bytes);
      before += BigInt(message.events);
      isComplete ||= message.isComplete;
      const reported = message.job && known.update(message.job);
      isReplay ??= reported?.isFinished;
    });
    const drained = new Promise((resolve) => call.on("end", resolve));
    const ended = new Promise<{ code: number; details: string }>((resolve) => call.on("status", resolve));
    const { code, details } = await ended;
    await drained;
    emit({ $case: "stream_ended", value: { job, stream, code, message: details } });
    return { isComplete, isReplay: isReplay ?? false };
  }
}

const { path, requestSerialize } = VagrantService.getJobStream;

/** Field numbers of GetJobStreamResponse and of the messages in it. */
const fields = { state: 2, stateJob: 3, terminal: 3, terminalEvents: 1, complete: 5 };

type JobStreamMessage = {
  /** The number of terminal events. */
  readonly events: number;
  readonly isComplete: boolean;
  readonly job: Buffer | undefined;
};

/** Reads what the tap must know of a message. Bytes that can't be read count as an empty message. */
export function readMessage(bytes: Uint8Array): JobStreamMessage {
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
