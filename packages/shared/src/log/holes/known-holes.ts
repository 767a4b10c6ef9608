import type { NatsConnection } from "nats";
import { z } from "zod";
import type { SourceName } from "../../source.ts";
import { isForbidden } from "../cluster/replicas.ts";
import type { Sequence } from "../offset.ts";
import type { Warn } from "../reading/decode.ts";
import { endSubjects, endsStream } from "../subjects.ts";

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

const timeoutMs = 2_000;

export type HolesWatchOptions = {
  readonly nats: NatsConnection;
  readonly workspace: string;
  readonly epoch: string;
  readonly warn: Warn;
  readonly everyMs?: number;
};

/** The holes of a workspace's log that ingest's last check found. Asked for again when they are used: a check takes hours. */
export class HolesWatch {
  readonly #options: HolesWatchOptions;
  #holes: readonly KnownHole[] = [];
  #loadedAt = performance.now();
  #hasWarned = false;
  /** Resolves after the first attempt. */
  readonly loaded: Promise<void>;

  /** The connection stays the caller's. */
  constructor(options: HolesWatchOptions) {
    this.#options = options;
    this.loaded = this.#load();
  }

  /** Those that are known; they may be ten seconds older than the time since the call before. */
  readonly now = (): readonly KnownHole[] => {
    if (performance.now() - this.#loadedAt >= (this.#options.everyMs ?? 10_000)) void this.#load();
    return this.#holes;
  };

  /** Without an answer, the last one counts. */
  async #load(): Promise<void> {
    const { nats, workspace, epoch, warn } = this.#options;
    this.#loadedAt = performance.now();
    if (nats.isClosed()) return;
    // A request for this subject alone: the stream has what not every service may read.
    const requestSubject = `$JS.API.DIRECT.GET.${endsStream}.${endSubjects(workspace).holes}`;
    try {
      const { data } = await nats.request(requestSubject, "", { timeout: timeoutMs });
      this.#holes = decodeHoles(data, epoch);
    } catch (err) {
      if (!isForbidden(err) || this.#hasWarned) return;
      this.#hasWarned = true;
      warn("lost events can't be reported: give this user of NATS its permissions anew", { err });
    }
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
