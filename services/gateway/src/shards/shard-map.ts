import { createHash } from "node:crypto";
import { JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { bucketNames, ensureBucket } from "@tapedeck/shared/log/key-value-bucket";
import type { NatsConnection } from "nats";
import { homeShard, type ShardConfig } from "./settings.ts";

const bucket = "TAPEDECK_SHARDS";
const { stream, subject: subjectOf } = bucketNames(bucket);
const wrongSequenceCodes: readonly number[] = [10071, 10164];
const timeoutMs = 2_000;

export type ShardMapOptions = {
  readonly shards: readonly Pick<ShardConfig, "name" | "workspaces" | "newWorkspaces">[];
  /** The workspace of callers without a token. */
  readonly homeWorkspace: string;
  /** Home's NATS. @throws TapedeckError not_ready */
  readonly nats: () => { readonly connection: NatsConnection };
  /** Whether the shard's log has events of the workspace. Rejects with TapedeckError when that can't be asked. */
  readonly holds: (shard: string, workspace: string) => Promise<boolean>;
  readonly warn: (message: string) => void;
};

/**
 * Where each workspace is: the NATS KV bucket `TAPEDECK_SHARDS` in home, key workspace, value the shard's name. An entry
 * is created once, by the first gateway that needs it, and never changes.
 */
export class ShardMap {
  readonly #options: ShardMapOptions;
  readonly #known = new Map<string, Promise<string>>();

  constructor(options: ShardMapOptions) {
    this.#options = options;
  }

  /**
   * The name of the workspace's shard.
   * @throws TapedeckError not_ready while home can't be asked, or for a new workspace any shard; internal when events of
   * it are in two shards, or its shard is not among the settings
   */
  of(workspace: string): Promise<string> {
    const known = this.#known.get(workspace);
    if (known !== undefined) return known;
    const found = this.#find(workspace);
    this.#known.set(workspace, found);
    found.catch(() => this.#known.delete(workspace));
    return found;
  }

  async #find(workspace: string): Promise<string> {
    if (workspace === this.#options.homeWorkspace) return homeShard;
    const name = await this.#entry(workspace);
    if (name !== homeShard && !this.#options.shards.some((shard) => shard.name === name)) {
      throw misplaced(`the workspace "${workspace}" is in the shard "${name}", which the setting shards does not have`);
    }
    const configured = this.#configured(workspace);
    if (configured !== undefined && configured !== name) {
      this.#options.warn(
        `the workspace "${workspace}" stays in the shard "${name}", although "${configured}" lists it`,
      );
    }
    return name;
  }

  async #entry(workspace: string): Promise<string> {
    try {
      const { connection } = this.#options.nats();
      const jsm = await jetstreamManager(connection, { timeout: timeoutMs, checkAPI: false });
      await ensureBucket(jsm, bucket);
      const subject = subjectOf(workspace);
      // From the leader: a replica could not know yet what another gateway has just decided.
      const read = async () => (await jsm.streams.getMessage(stream, { last_by_subj: subject }))?.string();
      const known = await read();
      if (known !== undefined) return known;
      const chosen = (await this.#holder(workspace)) ?? this.#chosen(workspace);
      try {
        const js = jetstream(connection, { timeout: timeoutMs });
        await js.publish(subject, chosen, { expect: { lastSubjectSequence: 0 } });
        return chosen;
      } catch (cause) {
        if (!(cause instanceof JetStreamApiError && wrongSequenceCodes.includes(cause.code))) throw cause;
        return (await read()) ?? chosen;
      }
    } catch (cause) {
      if (cause instanceof TapedeckError) throw cause;
      throw new TapedeckError("not_ready", "the map of the shards can't be read: try again in a moment", {}, { cause });
    }
  }

  /** Settings may name another shard than the one that a workspace was recorded in before. */
  async #holder(workspace: string): Promise<string | undefined> {
    const names = [homeShard, ...this.#options.shards.map(({ name }) => name)];
    const asked = await Promise.all(names.map((name) => this.#options.holds(name, workspace)));
    const holders = names.filter((_, index) => asked[index]);
    if (holders.length > 1) {
      throw misplaced(`events of the workspace "${workspace}" are in several shards: ${holders.join(", ")}`);
    }
    return holders[0];
  }

  #configured(workspace: string): string | undefined {
    return this.#options.shards.find(({ workspaces }) => workspaces.includes(workspace))?.name;
  }

  /** By a hash, so that gateways that decide at the same moment decide the same. */
  #chosen(workspace: string): string {
    const open = this.#options.shards.filter(({ newWorkspaces }) => newWorkspaces);
    const hash = createHash("sha256").update(workspace).digest().readUInt32BE(0);
    return this.#configured(workspace) ?? open[hash % Math.max(1, open.length)]?.name ?? homeShard;
  }
}

/** Only an operator can fix it; callers get the reason too, because they will ask. */
function misplaced(message: string): TapedeckError {
  return new TapedeckError("internal", `${message}: ask the operator of this Tapedeck`);
}
