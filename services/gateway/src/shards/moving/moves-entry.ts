import { JetStreamApiError, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { callerKind } from "@tapedeck/shared/audit/caller-kind";
import { wrongSequenceCodes } from "@tapedeck/shared/log/jetstream-writer";
import { bucketNames, ensureBucket } from "@tapedeck/shared/log/key-value-bucket";
import type { NatsConnection } from "nats";
import { z } from "zod";
import { mapBucket } from "../shard-map.ts";

/** No workspace has this name: theirs are lower case. */
const key = "MOVES";
const timeoutMs = 2_000;
const { stream, subject: subjectOf } = bucketNames(mapBucket);

const unfinishedSchema = z.object({
  workspace: z.string(),
  from: z.string(),
  to: z.string(),
  /** The caller who began it, for the audit log. */
  who: z.string(),
  kind: callerKind,
  token: z.string().optional(),
});

const entrySchema = z.object({
  /** Id of the turn of the gateway that moves; absent: none does. */
  turn: z.string().optional(),
  unfinished: z.array(unfinishedSchema),
});

/** A move that has closed its workspace, or was about to: some gateway has to take it to its end. */
export type UnfinishedMove = Readonly<z.infer<typeof unfinishedSchema>>;

export type Moves = { readonly turn?: string | undefined; readonly unfinished: readonly UnfinishedMove[] };

/** `revision`: 0 when there was never an entry. */
export type ReadMoves = { readonly moves: Moves; readonly revision: number };

/**
 * What all gateways know of moves: one entry beside the map of the shards, in home. A write names the revision that it
 * follows, so that one writer wins.
 */
export class MovesEntry {
  readonly #nats: () => { readonly connection: NatsConnection };

  /** `nats`: home's. @throws TapedeckError not_ready */
  constructor(nats: () => { readonly connection: NatsConnection }) {
    this.#nats = nats;
  }

  /** From the leader. Rejects when NATS can't be asked. */
  async read(): Promise<ReadMoves> {
    const message = await (await this.#jsm()).streams
      .getMessage(stream, { last_by_subj: subjectOf(key) })
      .catch((cause: unknown) => {
        if (cause instanceof Error && cause.name === "StreamNotFoundError") return null;
        throw cause;
      });
    const isThere = message !== null && message.data.byteLength > 0;
    return { moves: isThere ? entrySchema.parse(message.json()) : { unfinished: [] }, revision: message?.seq ?? 0 };
  }

  /** Undefined when the revision is not the last one. Rejects when it is not known whether it was written. */
  async write(moves: Moves, revision: number): Promise<number | undefined> {
    await ensureBucket(await this.#jsm(), mapBucket);
    const js = jetstream(this.#nats().connection, { timeout: timeoutMs });
    const expect = { lastSubjectSequence: revision };
    try {
      return (await js.publish(subjectOf(key), JSON.stringify(moves), { expect })).seq;
    } catch (cause) {
      if (cause instanceof JetStreamApiError && wrongSequenceCodes.includes(cause.code)) return undefined;
      throw cause;
    }
  }

  #jsm(): Promise<JetStreamManager> {
    return jetstreamManager(this.#nats().connection, { timeout: timeoutMs, checkAPI: false });
  }
}
