import { type Erasure, ErasureStore } from "@tapedeck/shared/log/erasures/erasure-store";
import { justBefore, logStart, type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import { lifecycleSubjects } from "@tapedeck/shared/log/subjects";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { SourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import type { OpenStores } from "../../store.ts";
import { findAllIn, goesOnAfter, type SessionLocation } from "../maintain/erase-session.ts";
import { workspaceOf } from "../maintain/erasures.ts";
import type { Store } from "../recorder-options.ts";
import type { Retentions } from "./retentions.ts";

export type SessionExpiryOptions = {
  readonly stores: Pick<OpenStores, "nats" | "leases" | "names" | "existing">;
  readonly retentions: Pick<Retentions, "of" | "stored">;
  /** ULID of this process: of several only one looks. */
  readonly ingest: string;
  /** How often it looks. Default: ten minutes. */
  readonly everyMs?: number | undefined;
  readonly logger: Logger;
  readonly signal: AbortSignal;
};

const defaultEveryMs = 600_000;
/** How many of its sessions are erased side by side. */
const maxOpen = 20;
const lookMs = 500;

type KnownSession = SessionLocation & { goesOn: boolean };

/** What the log says of sessions up to an offset, without those that are erased. */
type Reading = { readonly epoch: string; offset: Offset; readonly sessions: Map<string, KnownSession> };

/**
 * Has the sessions erased that ended longer ago than their workspace keeps facts, the oldest first. One workspace is looked at
 * after the other, and of each only what the log says of sessions before that time: what was read before is remembered.
 */
export class SessionExpiry implements AsyncDisposable {
  readonly #options: SessionExpiryOptions;
  readonly #erasures: ErasureStore;
  readonly #readings = new Map<string, Reading>();
  readonly #running: Promise<void>;

  constructor(options: SessionExpiryOptions) {
    this.#options = options;
    this.#erasures = new ErasureStore(options.stores.nats);
    this.#running = this.#run();
  }

  /** The signal has aborted. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    const { everyMs = defaultEveryMs, logger, signal } = this.#options;
    while (!signal.aborted) {
      try {
        await this.#all();
      } catch (err) {
        if (!signal.aborted) logger.warn({ err }, "can't look for sessions that are too old; trying again");
      }
      await delay(everyMs, signal);
    }
  }

  async #all(): Promise<void> {
    const { stores, retentions, ingest, logger } = this.#options;
    const limited = (await stores.names()).filter((name) => retentions.of(name).facts !== undefined);
    for (const known of this.#readings.keys()) if (!limited.includes(known)) this.#readings.delete(known);
    if (limited.length === 0) return;
    await using lease = await stores.leases.take("retention", ingest);
    if (lease === undefined) return;
    const signal = AbortSignal.any([this.#options.signal, lease.lost]);
    for (const workspace of limited) {
      if (signal.aborted) return;
      await this.#expire(workspace, signal).catch((err: unknown) => {
        if (!signal.aborted) logger.warn({ err, workspace }, "can't look for sessions that are too old; trying again");
      });
    }
  }

  async #expire(workspace: string, signal: AbortSignal): Promise<void> {
    const { stores, logger } = this.#options;
    const facts = await this.#keptFacts(workspace);
    if (facts === undefined) return;
    const store = await stores.existing(workspace);
    if (store === undefined) return;
    const sessions = await this.#before(store, new Date(Date.now() - facts * 1_000), signal);
    let expired = 0;
    for (const locations of Map.groupBy(sessions, ({ source }) => source).values()) {
      expired += await this.#expireSome(locations, { store, facts, signal });
    }
    if (expired > 0) logger.info({ workspace, sessions: expired }, "sessions are erased that are too old");
  }

  /** The longer one of what was heard and what is stored: a change that is heard may be refused, and one may not be heard. */
  async #keptFacts(workspace: string): Promise<number | undefined> {
    const { retentions } = this.#options;
    const stored = (await retentions.stored(workspace)).facts;
    const heard = retentions.of(workspace).facts;
    return stored === undefined || heard === undefined ? undefined : Math.max(stored, heard);
  }

  /** Sessions of one source, while facts are kept for this time. Resolves with how many are erased. */
  async #expireSome(
    locations: readonly KnownSession[],
    { store, facts, signal }: { readonly store: Store; readonly facts: number; readonly signal: AbortSignal },
  ): Promise<number> {
    const { workspace } = store;
    const byId = new Map(locations.map((one) => [one.session, one]));
    let expired = 0;
    for (const found of await findAllIn(locations, { ...store, signal })) {
      const location = byId.get(found.session);
      // It went on later: what is read next says so.
      if (location === undefined || (found.goesOn && !found.marked)) continue;
      if (!found.marked) {
        await this.#turn(workspace, signal);
        // It may have been changed while this waited, for hours where there are many.
        if (signal.aborted || (await this.#keptFacts(workspace)) !== facts) return expired;
        await this.#erasures.begin(erasureOf(location, found, store));
        expired++;
      }
      this.#readings.get(workspace)?.sessions.delete(found.session);
    }
    return expired;
  }

  /** The sessions that ended before a time, the oldest first. */
  async #before({ workspace, log }: Store, time: Date, signal: AbortSignal): Promise<readonly KnownSession[]> {
    const { reader, epoch } = log;
    const known = this.#readings.get(workspace);
    const reading: Reading = known?.epoch === epoch ? known : { epoch, offset: logStart, sessions: new Map() };
    this.#readings.set(workspace, reading);
    const next = await reader.firstSince(time);
    const until = next === undefined ? (await reader.bounds()).lastOffset : justBefore(next);
    if (until > reading.offset) {
      const from = { afterOffset: reading.offset, subjects: lifecycleSubjects };
      for await (const { event, offset } of reader.history(from, until, signal)) {
        const session = event.session || event.subject;
        if (event.kind === "session.erased") reading.sessions.delete(session);
        else if (session !== "") {
          const one = reading.sessions.get(session) ?? {
            source: event.source as SourceName,
            session,
            afterOffset: justBefore(offset),
            goesOn: true,
          };
          reading.sessions.set(session, one);
          one.goesOn = goesOnAfter(event) ?? one.goesOn;
        }
        reading.offset = offset;
      }
      signal.throwIfAborted();
      reading.offset = until;
    }
    return [...reading.sessions.values()].filter(({ goesOn }) => !goesOn);
  }

  /** Resolves when another session may be erased. */
  async #turn(workspace: string, signal: AbortSignal): Promise<void> {
    const isOwn = (one: Erasure) => one.kind === "retention" && workspaceOf(one) === workspace;
    while (!signal.aborted && (await this.#erasures.open()).filter(isOwn).length >= maxOpen) {
      await delay(lookMs, signal);
    }
  }
}

function erasureOf(
  { source, session, afterOffset }: SessionLocation,
  { lastSeq, endSeq }: { readonly lastSeq: number; readonly endSeq: number },
  { log }: Store,
): Erasure {
  return {
    source,
    session,
    epoch: log.epoch,
    lastSeq,
    endSeq,
    removedSeq: sequenceOf(afterOffset),
    removed: 0,
    state: "removing",
    began: new Date().toISOString(),
    who: "retention",
    kind: "retention",
  };
}
