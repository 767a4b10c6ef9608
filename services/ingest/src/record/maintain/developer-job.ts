import { removePerson } from "@tapedeck/shared/audit/person";
import {
  type DeveloperErasure,
  DeveloperErasureStore,
  developerKey,
} from "@tapedeck/shared/log/erasures/developer-erasures";
import { type Erasure, ErasureStore } from "@tapedeck/shared/log/erasures/erasure-store";
import { requestTablesPassed } from "@tapedeck/shared/log/erasures/tables-passed";
import { type Sequence, sequenceOf } from "@tapedeck/shared/log/offset";
import { QueryMapStore, queriesOf, tablesOf } from "@tapedeck/shared/log/queries/query-map";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import type { Logger } from "@tapedeck/shared/service/logger";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { sourceErased } from "../own-facts/source-facts.ts";
import type { Recorder } from "../recorder.ts";
import type { Store } from "../recorder-options.ts";
import { type DeveloperSession, type DeveloperSources, sourcesOfDeveloper } from "./developer-sources.ts";
import { removeMessage } from "./erase-session.ts";
import { removalPace } from "./removal-pace.ts";

export type DeveloperJobOptions = {
  readonly store: Store;
  readonly recordFact: Recorder["recordFact"];
  /** For the audit log: once or, after a crash, twice. Never rejects. */
  readonly auditDeveloper: (
    action: "developer.erasure-begun" | "developer.erased",
    erasure: DeveloperErasure,
  ) => Promise<void>;
  readonly logger: Logger;
};

/** How many sessions are erased side by side. */
const sessionsAtOnce = 20;
/** How often it looks whether they are. */
const lookMs = 500;
/** How long the tables may take to follow. */
const tablesMs = 5_000;
const tablesRetryMs = 100;
const waitsForTables = "query, whose tables still have the name";

type Named = DeveloperErasure & { readonly developer: string };

/**
 * Erases a developer: first the sessions, the oldest first, each as an erasure of its own; then each source, when the tables
 * have left it, with its mark as the last message of it; and last the name in the audit log and in the ends of the sessions'
 * erasures. The log shows what is left, so it may be broken off anywhere and begun again. Rejects when the log is
 * unavailable.
 */
export class DeveloperJob {
  readonly #options: DeveloperJobOptions;
  readonly #signal: AbortSignal;
  readonly #developers: DeveloperErasureStore;
  readonly #sessions: ErasureStore;
  readonly #key: string;
  #erasure: Named;

  constructor(options: DeveloperJobOptions, erasure: Named, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#developers = new DeveloperErasureStore(options.store.nats);
    this.#sessions = new ErasureStore(options.store.nats);
    this.#key = developerKey(erasure);
    this.#erasure = erasure;
  }

  async run(): Promise<void> {
    if (!this.#erasure.audited) {
      await this.#options.auditDeveloper("developer.erasure-begun", this.#erasure);
      await this.#advance({ audited: true });
    }
    const deps = { ...this.#options.store, signal: this.#signal };
    while (!this.#signal.aborted) {
      const { sources, sessions } = await sourcesOfDeveloper(this.#erasure, deps);
      const left = sessions.filter(({ marked }) => !marked);
      await this.#advance({ waitsFor: undefined, sessions: sessions.length, erased: sessions.length - left.length });
      if (sources.size === 0) return await this.#finish();
      await this.#eraseSome(left.filter(({ goesOn }) => !goesOn).slice(0, sessionsAtOnce));
      if (left.length === 0) await this.#forgetAll(sources);
      else if (left.every(({ goesOn }) => goesOn)) await this.#wait(recorded(left[0]?.source ?? ""));
    }
  }

  async #eraseSome(sessions: readonly DeveloperSession[]): Promise<void> {
    const { log } = this.#options.store;
    const { who, kind, by } = this.#erasure;
    for (const { source, session, afterOffset } of sessions) {
      const { lastOffset } = await log.reader.bounds();
      await this.#sessions.begin({
        source,
        session,
        epoch: log.epoch,
        lastSeq: sequenceOf(lastOffset),
        removedSeq: sequenceOf(afterOffset),
        removed: 0,
        state: "removing",
        began: new Date().toISOString(),
        who,
        kind,
        by,
      });
    }
    while (!this.#signal.aborted && (await this.#sessions.open()).some((one) => this.#isOwn(one))) {
      await delay(lookMs, this.#signal);
    }
  }

  async #forgetAll(sources: DeveloperSources["sources"]): Promise<void> {
    for (const [source, mark] of sources) {
      const waitsFor = await this.#forget(source, mark);
      if (waitsFor !== undefined) return await this.#wait(waitsFor);
    }
  }

  /** Removes what is kept of a source without sessions. Returns what it has to wait for. */
  async #forget(source: SourceName, known: Sequence | undefined): Promise<string | undefined> {
    const { store } = this.#options;
    await using lease = await store.leases.take(source, "erasure");
    if (lease === undefined) return recorded(source);
    const signal = AbortSignal.any([this.#signal, lease.lost]);
    const mark = known ?? (await this.#marked(source, signal));
    if (mark === undefined) return undefined;
    if (!(await this.#havePassed(mark, signal))) return waitsForTables;
    // The end of the source is behind what the log is going to have.
    await store.log.ends?.forget((one) => one === source);
    const stored = store.log.stored({ first: 1, last: mark - 1, subjects: [sourceFilter(source)] }, signal);
    const sequences = (await Array.fromAsync(stored)).map(({ seq }) => seq);
    for (const seq of sequences.toReversed()) {
      await removalPace.step(() => removeMessage(store, seq), signal);
    }
    // Tables that were begun meanwhile may have read what was not removed yet: only the mark takes it from them again.
    if (!(await this.#havePassed(mark, signal))) return waitsForTables;
    await removalPace.step(() => removeMessage(store, mark), signal);
    return undefined;
  }

  /** Undefined: something came behind the mark, which the next round finds. */
  async #marked(source: SourceName, signal: AbortSignal): Promise<Sequence | undefined> {
    const { store, recordFact } = this.#options;
    await recordFact(source, "", sourceErased());
    return (await sourcesOfDeveloper(this.#erasure, { ...store, signal })).sources.get(source);
  }

  /** Asks all queries that have rows of the workspace: what one of them still had would come back when it answers. */
  async #havePassed(seq: Sequence, signal: AbortSignal): Promise<boolean> {
    const { nats, workspace, log } = this.#options.store;
    const end = performance.now() + tablesMs;
    const map = new QueryMapStore(nats);
    while (!signal.aborted && performance.now() < end) {
      const queries = tablesOf(queriesOf(await map.read(), workspace));
      const answers = queries.map((query) =>
        requestTablesPassed(nats, workspace, { epoch: log.epoch, seq, query, timeoutMs: tablesMs }),
      );
      if ((await Promise.all(answers)).every((one) => one)) return true;
      await delay(tablesRetryMs, signal);
    }
    return false;
  }

  async #finish(): Promise<void> {
    const { store, auditDeveloper, logger } = this.#options;
    const erased = (await this.#sessions.done()).filter((one) => this.#isOwn(one));
    const ids = new Set(erased.map(({ session }) => session));
    const exports = await removePerson(store.nats, this.#erasure, ids, this.#signal);
    if (this.#signal.aborted) return;
    await this.#advance({ exports: [...exports], sessions: ids.size, erased: ids.size });
    for (const session of ids) await this.#sessions.forget(session);
    await auditDeveloper("developer.erased", this.#erasure);
    await this.#developers.end(this.#key, this.#erasure);
    logger.info({ workspace: this.#erasure.workspace, sessions: ids.size }, "a developer was erased");
  }

  #isOwn({ source }: Erasure): boolean {
    const { workspace, developer } = sourceParts(source as SourceName);
    return workspace === this.#erasure.workspace && developer === this.#erasure.developer;
  }

  async #wait(waitsFor: string): Promise<void> {
    await this.#advance({ waitsFor });
    await delay(lookMs * 2, this.#signal);
  }

  async #advance(change: Partial<Omit<DeveloperErasure, "developer">>): Promise<void> {
    const changed = { ...this.#erasure, ...change };
    if (JSON.stringify(changed) === JSON.stringify(this.#erasure)) return;
    this.#erasure = changed;
    await this.#developers.advance(this.#key, changed);
  }
}

function recorded(source: string): string {
  return `${source}, which is being recorded: end that`;
}
