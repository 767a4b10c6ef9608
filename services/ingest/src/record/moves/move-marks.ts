import { isDeepStrictEqual } from "node:util";
import { JetStreamApiError, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { isForbidden } from "@tapedeck/shared/log/cluster/replicas";
import { wrongSequenceCodes } from "@tapedeck/shared/log/jetstream-writer";
import { bucketNames, ensureBucket } from "@tapedeck/shared/log/key-value-bucket";
import { asciiName, nameOfAscii } from "@tapedeck/shared/source";
import type { NatsConnection } from "nats";
import { z } from "zod";
import { notReady } from "../push-errors.ts";

const bucket = "TAPEDECK_MOVES";
const { stream, subject: subjectOf } = bucketNames(bucket);
const timeoutMs = 2_000;

const markSchema = z.object({
  state: z.enum(["arriving", "arrived", "leaving", "gone"]),
  /** The shard that the workspace comes from, or goes to. */
  other: z.string(),
});

/** How far a workspace has moved, by one of the two shards. Only `arrived` lets anybody write to it there. */
export type MoveMark = Readonly<z.infer<typeof markSchema>>;

/** `revision`: 0 when there was never a mark. */
export type ReadMark = { readonly mark: MoveMark | undefined; readonly revision: number };

/** The workspace is in another shard, or on its way. */
export class WorkspaceMovedError extends TapedeckError {
  constructor(workspace: string, { state, other }: MoveMark) {
    const text =
      state === "arriving" ? `is being moved here from the shard "${other}"` : `moves to the shard "${other}"`;
    super("not_ready", `the workspace "${workspace}" ${text}: try again in a moment`);
  }
}

/**
 * The marks of workspaces that move between shards: a KV bucket in the NATS of each of the two. Every writer of a
 * workspace reads its mark first, so a gateway with an outdated map can't have anything recorded. The bucket is created
 * with the first mark.
 */
export class MoveMarks {
  readonly #nats: NatsConnection;
  #manager: Promise<JetStreamManager> | undefined;

  /** The connection stays the caller's. */
  constructor(nats: NatsConnection) {
    this.#nats = nats;
  }

  /** From the leader: a replica might not know it yet. Rejects when NATS can't be asked. */
  async of(workspace: string): Promise<ReadMark> {
    const message = await this.#get({ last_by_subj: subjectOf(asciiName(workspace)) });
    return { mark: message && parsed(message.data), revision: message?.seq ?? 0 };
  }

  /** The workspaces to which nobody may write here. Rejects as `of`. */
  async closed(): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (let seq = 1; ; ) {
      const message = await this.#get({ seq, next_by_subj: subjectOf("*") });
      if (message === undefined) return found;
      seq = message.seq + 1;
      const mark = parsed(message.data);
      if (isClosed(mark)) found.add(nameOfAscii(message.subject.split(".").at(-1) ?? ""));
    }
  }

  /** @throws WorkspaceMovedError unless the workspace may be written to here. Rejects otherwise as `of` */
  async assertOpen(workspace: string): Promise<void> {
    const { mark } = await this.of(workspace);
    if (isClosed(mark)) throw new WorkspaceMovedError(workspace, mark);
  }

  /**
   * Replaces the mark that was read, and reads it back: nobody heeds a mark that can't be read.
   * @throws TapedeckError not_ready when another call was faster, or the user of ingest lacks a permission
   */
  async set(workspace: string, mark: MoveMark, { revision }: Pick<ReadMark, "revision">): Promise<void> {
    const failed = (cause: unknown): never => {
      if (isForbidden(cause)) throw noPermission("written", cause);
      const isLate = cause instanceof JetStreamApiError && wrongSequenceCodes.includes(cause.code);
      throw notReady(isLate ? `another move of "${workspace}" is under way` : "the log is unavailable", cause);
    };
    await ensureBucket(await this.#jsm(), bucket).catch(failed);
    const js = jetstream(this.#nats, { timeout: timeoutMs });
    const expect = { lastSubjectSequence: revision };
    await js.publish(subjectOf(asciiName(workspace)), JSON.stringify(mark), { expect }).catch(failed);
    const { mark: there } = await this.of(workspace).catch(failed);
    if (there === undefined) throw noPermission("read back");
    if (!isDeepStrictEqual(there, mark)) throw notReady(`another move of "${workspace}" is under way`);
  }

  async #get(query: { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj: string }) {
    try {
      return (await (await this.#jsm()).streams.getMessage(stream, query)) ?? undefined;
    } catch (cause) {
      // No workspace was ever moved. A user who may not read the bucket may not write it either, so nobody did.
      if ((cause instanceof Error && cause.name === "StreamNotFoundError") || isForbidden(cause)) return undefined;
      throw cause;
    }
  }

  #jsm(): Promise<JetStreamManager> {
    this.#manager ??= jetstreamManager(this.#nats, { timeout: timeoutMs, checkAPI: false });
    return this.#manager;
  }
}

function noPermission(what: "written" | "read back", cause?: unknown): TapedeckError {
  const text = `the mark of the moving workspace can't be ${what}: give the user of ingest the permissions in infra/nats/tapedeck-users.conf, then repeat the move`;
  return new TapedeckError("not_ready", text, {}, { cause });
}

function isClosed(mark: MoveMark | undefined): mark is MoveMark {
  return mark !== undefined && mark.state !== "arrived";
}

/** An operator may have deleted it, to give a move up: then the bucket holds an empty message. */
function parsed(data: Uint8Array): MoveMark | undefined {
  return data.byteLength === 0 ? undefined : markSchema.parse(JSON.parse(new TextDecoder().decode(data)));
}
