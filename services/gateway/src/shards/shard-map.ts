import { createHash } from "node:crypto";
import { JetStreamApiError, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { infoOfLeader } from "@tapedeck/shared/log/cluster/leader-info";
import { bucketNames, ensureBucket } from "@tapedeck/shared/log/key-value-bucket";
import { asciiName, isNamePart, nameOfAscii } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import type { NatsConnection } from "nats";
import { homeShard, type ShardConfig } from "./settings.ts";

export const mapBucket = "TAPEDECK_SHARDS";
const { stream, subject: subjectOf } = bucketNames(mapBucket);
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
  readonly pollMs?: number;
};

export type MapChange = { readonly from: string; readonly to: string };

/** A gateway notices within this time, if home's NATS answers, that another one has moved a workspace. */
const defaultPollMs = 1_000;

/**
 * Where each workspace is: the NATS KV bucket `TAPEDECK_SHARDS` in home, key workspace, value the shard's name. An entry
 * is created by the first gateway that needs it, and changes only when the workspace is moved. What is read is kept, and
 * read again when the bucket has changed. A gateway that does not know yet does no harm: the old shard refuses what it
 * would record, by a mark of its own.
 */
export class ShardMap {
  readonly #options: ShardMapOptions;
  readonly #known = new Map<string, Promise<string>>();
  readonly #stays = new Map<string, AbortController>();
  /** The bucket's last sequence when the known entries were compared with it. */
  #seen = 0;

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

  /** The same, read now. @throws TapedeckError invalid_argument when no shard has anything of it */
  async read(workspace: string): Promise<string> {
    const before = this.#known.get(workspace);
    const found = await this.#find(workspace, "known");
    if (before !== undefined && (await before.catch(() => found)) !== found) this.#hasMoved(workspace);
    this.#known.set(workspace, Promise.resolve(found));
    return found;
  }

  /** Aborts, with the error for callers as its reason, when the workspace is moved: calls that are open would go on reading the old shard. */
  stay(workspace: string): AbortSignal {
    const known = this.#stays.get(workspace) ?? new AbortController();
    this.#stays.set(workspace, known);
    return known.signal;
  }

  /** The entries of workspaces that were called. @throws TapedeckError not_ready */
  async all(): Promise<readonly (readonly [workspace: string, shard: string])[]> {
    return orNotReady(async () => {
      const jsm = await this.#jsm();
      await ensureBucket(jsm, mapBucket);
      const { state } = await infoOfLeader(jsm, stream, { subjects_filter: subjectOf(">") });
      const keys = Object.keys(state.subjects ?? {}).map((subject) => subject.slice(subjectOf("").length));
      // The bucket has the entry of the moves, too.
      const names = keys.map(nameOfAscii).filter(isNamePart);
      const entries: (readonly [string, string])[] = [];
      for (const name of names) entries.push([name, (await this.#get(jsm, name)).shard ?? homeShard]);
      return entries;
    });
  }

  /**
   * Moves the entry, unless it has been moved there already.
   * @throws TapedeckError not_ready; internal when it is neither
   */
  async change(workspace: string, { from, to }: MapChange): Promise<void> {
    await orNotReady(async () => {
      const { connection } = this.#options.nats();
      const { shard, revision } = await this.#get(await this.#jsm(), workspace);
      if (shard === to) return;
      if (shard !== from) throw misplaced(`the workspace "${workspace}" was to leave "${from}", but is in "${shard}"`);
      const expect = { lastSubjectSequence: revision };
      await jetstream(connection, { timeout: timeoutMs }).publish(subjectOf(asciiName(workspace)), to, { expect });
    });
    await this.read(workspace);
  }

  /** Reads again what another gateway has moved, if it is known here, until the signal. */
  async watch(signal: AbortSignal): Promise<void> {
    const { pollMs = defaultPollMs } = this.#options;
    while (!signal.aborted) {
      // While home is away nothing changes there either; what is known stays.
      await this.#readChanges().catch(() => {});
      await delay(pollMs, signal);
    }
  }

  async #readChanges(): Promise<void> {
    if (this.#known.size === 0) return;
    const jsm = await this.#jsm();
    const { state } = await infoOfLeader(jsm, stream);
    // A bucket that was restored may be shorter.
    if (state.last_seq < this.#seen) this.#seen = 0;
    while (this.#seen < state.last_seq) {
      const next = { seq: this.#seen + 1, next_by_subj: subjectOf(">") };
      const entry = await jsm.streams.getMessage(stream, next);
      if (entry !== null) await this.#compare(nameOfAscii(entry.subject.slice(subjectOf("").length)), entry.string());
      this.#seen = entry?.seq ?? state.last_seq;
    }
  }

  async #compare(workspace: string, shard: string): Promise<void> {
    const known = this.#known.get(workspace);
    if (known === undefined || (await known.catch(() => shard)) === shard) return;
    await this.read(workspace).catch(() => {
      // It has left the shard that is known, wherever it is now: who asks gets the reason.
      this.#known.delete(workspace);
      this.#hasMoved(workspace);
    });
  }

  #hasMoved(workspace: string): void {
    const stay = this.#stays.get(workspace);
    this.#stays.delete(workspace);
    const text = `the workspace "${workspace}" has moved to another shard: try again in a moment`;
    stay?.abort(new TapedeckError("not_ready", text));
  }

  #jsm(): Promise<JetStreamManager> {
    return jetstreamManager(this.#options.nats().connection, { timeout: timeoutMs, checkAPI: false });
  }

  /** From the leader: a replica could not know yet what another gateway has just decided. */
  async #get(jsm: JetStreamManager, workspace: string) {
    const message = await jsm.streams.getMessage(stream, { last_by_subj: subjectOf(asciiName(workspace)) });
    return { shard: message?.string(), revision: message?.seq ?? 0 };
  }

  async #find(workspace: string, which: "any" | "known" = "any"): Promise<string> {
    if (workspace === this.#options.homeWorkspace) return homeShard;
    const name = await this.#entry(workspace, which);
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

  #entry(workspace: string, which: "any" | "known"): Promise<string> {
    return orNotReady(async () => {
      const { connection } = this.#options.nats();
      const jsm = await this.#jsm();
      await ensureBucket(jsm, mapBucket);
      const { shard: known } = await this.#get(jsm, workspace);
      if (known !== undefined) return known;
      const holder = await this.#holder(workspace);
      if (holder === undefined && which === "known") {
        throw invalidArgument(`the workspace "${workspace}" has no data`, "workspace");
      }
      const chosen = holder ?? this.#chosen(workspace);
      try {
        const js = jetstream(connection, { timeout: timeoutMs });
        await js.publish(subjectOf(asciiName(workspace)), chosen, { expect: { lastSubjectSequence: 0 } });
        return chosen;
      } catch (cause) {
        if (!(cause instanceof JetStreamApiError && wrongSequenceCodes.includes(cause.code))) throw cause;
        return (await this.#get(jsm, workspace)).shard ?? chosen;
      }
    });
  }

  /** Settings may name another shard than the one that a workspace was recorded in before. */
  async #holder(workspace: string): Promise<string | undefined> {
    const names = [homeShard, ...this.#options.shards.map(({ name }) => name)];
    const requests = await Promise.all(names.map((name) => this.#options.holds(name, workspace)));
    const holders = names.filter((_, index) => requests[index]);
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

async function orNotReady<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    if (cause instanceof TapedeckError) throw cause;
    throw new TapedeckError("not_ready", "the map of the shards can't be read: try again in a moment", {}, { cause });
  }
}

/** Only an operator can fix it; callers get the reason too, because they will ask. */
function misplaced(message: string): TapedeckError {
  return new TapedeckError("internal", `${message}: ask the operator of this Tapedeck`);
}
