import {
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  type StoredMsg,
} from "@nats-io/jetstream";
import { headers, type NatsConnection } from "nats";
import { z } from "zod";
import { isForbidden } from "../log/cluster/replicas.ts";
import { bucketNames, ensureBucket } from "../log/key-value-bucket.ts";
import { wrongSequenceCodes } from "../log/writing/jetstream-writer.ts";
import { asciiName, nameOfAscii } from "../source.ts";

// The sinks in a NATS KV bucket:
//
//   sink.<workspace>.<name>              what an admin has defined, with its secrets
//   control.<workspace>.<name>           whether it is paused
//   cursor.<workspace>.<name>            up to where its target has accepted; changes by compare-and-set
//   status.<workspace>.<name>            how it is, as the gateway that delivers sees it
//   parked.<workspace>.<name>.<place>    an event that its target refuses
//   owner                                the gateway that delivers; 6 s

const bucket = "TAPEDECK_SINKS";
const { stream, subject: subjectOf } = bucketNames(bucket);

export const sinkEntryTypes = ["sink", "control", "cursor", "status", "parked"] as const;
export type SinkEntryType = (typeof sinkEntryTypes)[number];

/** A sink: its name is unique in its workspace. */
export type SinkName = { readonly workspace: string; readonly sink: string };

/** The key of an entry. `place`: of a parked event alone. */
export type SinkKey = SinkName & { readonly type: SinkEntryType; readonly place?: string | undefined };

export type SinkEntry = SinkKey & { readonly revision: number; readonly value: unknown };

/** Subjects on which changes of entries can be heard, before the bucket has them. */
export const sinkSubjects = (type: SinkEntryType) => subjectOf(`${type}.>`);
export const sinkOwnerSubject = subjectOf("owner");

const keyText = ({ type, workspace, sink, place }: SinkKey) =>
  [type, asciiName(workspace), sink, ...(place === undefined ? [] : [place])].join(".");

/** Undefined for what is no entry of a sink. */
export function sinkKeyOf(subject: string): SinkKey | undefined {
  const [name = "", workspace, sink, place] = subject.slice(subjectOf("").length).split(".");
  const type = sinkEntryTypes.find((one) => one === name);
  if (type === undefined || workspace === undefined || sink === undefined) return undefined;
  return { type, workspace: nameOfAscii(workspace), sink, ...(place !== undefined && { place }) };
}

/** What a backup has of the sinks: the values by their keys. It contains the secrets. */
export const sinkBackup = z.record(z.string(), z.unknown());
export type SinkBackup = Readonly<z.infer<typeof sinkBackup>>;

/** What is only true of the present is in no backup. */
const inBackups: readonly SinkEntryType[] = ["sink", "control", "cursor", "parked"];

/** How long the end of an entry is listed. */
const endMs = 60_000;
const timeoutMs = 2_000;

export type PutOptions = {
  /** Written only if this is the revision of the entry; 0: only if there is none. */
  readonly revision?: number | undefined;
  readonly ttlMs?: number | undefined;
};

/** The sinks as they are stored. Reads are from the bucket's leader. Everything rejects while NATS is away. */
export class SinkStore {
  readonly #nats: NatsConnection;
  readonly #js: JetStreamClient;
  #manager: Promise<JetStreamManager> | undefined;
  #made: Promise<void> | undefined;

  /** The connection stays the caller's. */
  constructor(nats: NatsConnection) {
    this.#nats = nats;
    this.#js = jetstream(nats, { timeout: timeoutMs });
  }

  /** The entries of these types, of one sink if it is given. Empty where there never was a sink. */
  async all(types: readonly SinkEntryType[], of?: SinkName): Promise<readonly SinkEntry[]> {
    const found = new Map<string, SinkEntry>();
    for (const type of types) {
      const isOne = type !== "parked";
      const filter =
        of === undefined ? sinkSubjects(type) : subjectOf(keyText({ ...of, type, place: isOne ? undefined : "*" }));
      for (let seq = 1; ; ) {
        const message = await this.#get({ seq, next_by_subj: filter });
        if (message === undefined) break;
        seq = message.seq + 1;
        // An entry that is written while this reads comes again, or its end does.
        const entry = entryIn(message);
        if (entry === undefined) found.delete(message.subject);
        else found.set(message.subject, entry);
      }
    }
    return [...found.values()];
  }

  /** Undefined: there is none. The revision is also that of an entry that was removed. */
  async get(key: SinkKey): Promise<{ readonly value: unknown; readonly revision: number }> {
    return this.#last(keyText(key));
  }

  /** The revision; undefined: the entry has another one than expected. */
  put(key: SinkKey, value: object, options: PutOptions = {}): Promise<number | undefined> {
    return this.#put(keyText(key), JSON.stringify(value), options);
  }

  /** The revision is that of the end; undefined: the entry has another one than expected. */
  remove(key: SinkKey, { revision }: Pick<PutOptions, "revision"> = {}): Promise<number | undefined> {
    return this.#put(keyText(key), "", { ttlMs: endMs, revision });
  }

  /** The gateway that delivers, an id; undefined: none. */
  async owner(): Promise<{ readonly owner: string | undefined; readonly revision: number }> {
    const { value, revision } = await this.#last("owner");
    const parsed = z.object({ gateway: z.string() }).safeParse(value);
    return { owner: parsed.data?.gateway, revision };
  }

  /** The revision; undefined: another one was first. */
  own(gateway: string, { revision, ttlMs }: Required<PutOptions>): Promise<number | undefined> {
    return this.#put("owner", JSON.stringify({ gateway }), { revision, ttlMs });
  }

  async disown(revision: number): Promise<void> {
    await this.#put("owner", "", { ttlMs: endMs, revision });
  }

  /** For a backup of all workspaces, or of one. */
  async backUp(workspace?: string): Promise<SinkBackup> {
    const entries = await this.all(inBackups);
    const found = entries.filter((entry) => workspace === undefined || entry.workspace === workspace);
    return Object.fromEntries(found.map((entry) => [keyText(entry), entry.value]));
  }

  /** Puts back what is missing; what is there, or was removed a moment ago, stays as it is. Resolves with how many sinks. */
  async putBack(backup: SinkBackup, isIncluded: (workspace: string) => boolean): Promise<number> {
    const included = Object.entries(backup).flatMap(([text, value]) => {
      const key = sinkKeyOf(subjectOf(text));
      if (key === undefined || !inBackups.includes(key.type) || !isIncluded(key.workspace)) return [];
      return [{ text, value, isSink: key.type === "sink" }];
    });
    let added = 0;
    // A gateway begins a sink as soon as it is there, and has to find its cursor, and whether it is paused.
    for (const { text, value, isSink } of included.toSorted((a, b) => Number(a.isSink) - Number(b.isSink))) {
      const revision = await this.#put(text, JSON.stringify(value), { revision: 0 });
      if (revision !== undefined && isSink) added += 1;
    }
    return added;
  }

  async #last(key: string) {
    const message = await this.#get({ last_by_subj: subjectOf(key) });
    return { value: message && valueIn(message.data), revision: message?.seq ?? 0 };
  }

  /** Without a text the entry is removed. */
  async #put(key: string, text: string, { revision, ttlMs }: PutOptions): Promise<number | undefined> {
    const h = headers();
    if (text === "") h.set("KV-Operation", "DEL");
    if (ttlMs !== undefined) h.set("Nats-TTL", `${Math.ceil(ttlMs / 1_000)}s`);
    const expect = revision === undefined ? {} : { expect: { lastSubjectSequence: revision } };
    await this.#ensure();
    try {
      return (await this.#js.publish(subjectOf(key), text, { headers: h, ...expect })).seq;
    } catch (cause) {
      if (cause instanceof JetStreamApiError && wrongSequenceCodes.includes(cause.code)) return undefined;
      this.#made = undefined; // the bucket may have to be made again
      throw cause;
    }
  }

  #ensure(): Promise<void> {
    this.#made ??= this.#jsm()
      .then((jsm) => ensureBucket(jsm, bucket, { allow_msg_ttl: true }))
      .catch((cause: unknown) => {
        this.#made = undefined;
        throw cause;
      });
    return this.#made;
  }

  async #get(query: EntryQuery): Promise<StoredMsg | undefined> {
    try {
      return (await (await this.#jsm()).streams.getMessage(stream, query)) ?? undefined;
    } catch (cause) {
      // There never was a sink. A user who may not read the bucket belongs to a NATS without sinks.
      if ((cause instanceof Error && cause.name === "StreamNotFoundError") || isForbidden(cause)) return undefined;
      throw cause;
    }
  }

  #jsm(): Promise<JetStreamManager> {
    this.#manager ??= jetstreamManager(this.#nats, { timeout: timeoutMs, checkAPI: false });
    return this.#manager;
  }
}

type EntryQuery = { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj: string };

/** Undefined for the end of one, and for what is not Tapedeck's. */
function entryIn({ subject, seq, data }: Pick<StoredMsg, "subject" | "seq" | "data">): SinkEntry | undefined {
  const key = sinkKeyOf(subject);
  const value = valueIn(data);
  return key === undefined || value === undefined ? undefined : { ...key, revision: seq, value };
}

function valueIn(data: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(data));
  } catch {
    return undefined;
  }
}
