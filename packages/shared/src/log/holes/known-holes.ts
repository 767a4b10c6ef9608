import type { NatsConnection } from "nats";
import { z } from "zod";
import type { SourceName } from "../../source.ts";
import { startInterval, stopTimer } from "../../sync/timers.ts";
import { isForbidden } from "../cluster/replicas.ts";
import type { Sequence } from "../offset.ts";
import type { Warn } from "../reading/decode.ts";
import { endsRoot, endsStream } from "../subjects.ts";

/**
 * Where the log has lost messages of a source. The first and the last message there is missing. Where another log had lost
 * them before the workspace was moved here, no message is missing: `last` is then before `first`, which is the next one.
 */
export type KnownHole = {
  readonly source: SourceName;
  /** The sessions of the source's messages before and after it: nothing is known to be lost of any other. */
  readonly sessions: readonly string[];
  readonly first: Sequence;
  readonly last: Sequence;
};

/** Where ingest stores the holes that its last check found, beside the log. */
export const holesSubject = `${endsRoot}.holes`;

/** Only the first ones are stored. */
const maxKnownHoles = 1_000;

const storedSchema = z.object({
  epoch: z.string(),
  holes: z.array(
    z.object({ source: z.string(), sessions: z.array(z.string()).readonly(), first: z.number(), last: z.number() }),
  ),
});

export function encodeHoles(epoch: string, holes: readonly KnownHole[]): string {
  const inOrder = holes.toSorted((a, b) => a.first - b.first);
  return JSON.stringify({ epoch, holes: inOrder.slice(0, maxKnownHoles) } satisfies z.input<typeof storedSchema>);
}

/** A request for this subject alone: the stream has what not every service may read. */
const requestSubject = `$JS.API.DIRECT.GET.${endsStream}.${holesSubject}`;
const timeoutMs = 2_000;

export type HolesWatchOptions = {
  readonly nats: NatsConnection;
  readonly epoch: string;
  readonly warn: Warn;
  readonly everyMs?: number;
};

/** The holes that ingest's last check found. Polled, because a check takes hours. */
export class HolesWatch implements Disposable {
  readonly #options: HolesWatchOptions;
  readonly #timer;
  #holes: readonly KnownHole[] = [];
  #hasWarned = false;
  /** Resolves after the first attempt. */
  readonly loaded: Promise<void>;

  /** The connection stays the caller's. */
  constructor(options: HolesWatchOptions) {
    this.#options = options;
    this.loaded = this.#load();
    this.#timer = startInterval(() => void this.#load(), options.everyMs ?? 10_000).unref();
  }

  readonly now = (): readonly KnownHole[] => this.#holes;

  /** Without an answer, the last one counts. */
  async #load(): Promise<void> {
    const { nats, epoch, warn } = this.#options;
    if (nats.isClosed()) return;
    try {
      const { data } = await nats.request(requestSubject, "", { timeout: timeoutMs });
      this.#holes = decodeHoles(data, epoch);
    } catch (err) {
      if (!isForbidden(err) || this.#hasWarned) return;
      this.#hasWarned = true;
      warn("lost events can't be reported: give this user of NATS its permissions anew", { err });
    }
  }

  [Symbol.dispose](): void {
    stopTimer(this.#timer);
  }
}

/** None where nothing is stored, or where it is another log's. */
function decodeHoles(data: Uint8Array, epoch: string): readonly KnownHole[] {
  try {
    const stored = storedSchema.parse(JSON.parse(new TextDecoder().decode(data)));
    return stored.epoch === epoch ? stored.holes.map((hole) => ({ ...hole, source: hole.source as SourceName })) : [];
  } catch {
    return [];
  }
}
