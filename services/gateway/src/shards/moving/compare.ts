import { isDeepStrictEqual } from "node:util";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { decodeEvent } from "@tapedeck/shared/events/codec";
import { eventsIn, eventsOf, labelsOf, sessionOf } from "@tapedeck/shared/log/batch";
import type { Log } from "@tapedeck/shared/log/jetstream";
import type { StoredMessage } from "@tapedeck/shared/log/log";
import type { Sequence } from "@tapedeck/shared/log/offset";
import { workspaceFilter } from "@tapedeck/shared/log/subjects";

type Logs = { readonly old: Log["stored"]; readonly copies: Log["stored"] };

/** Sequences of the old log, and of the new one. */
type Reached = { readonly old: Sequence; readonly copies: Sequence };

const aboutToExpireMs = 60_000;

/**
 * Compares the messages of a workspace in two logs, part by part, in their order: nothing may be missing or different in
 * the new one, but for what was about to expire. What is gone from the old log alone has expired, or must have been
 * erased there.
 */
export class CopyComparison {
  readonly #workspace: string;
  readonly #now: () => number;
  readonly #erased = new Set<string>();
  /** Sessions of which the new log has more. */
  readonly #more = new Set<string>();
  #reached: Reached = { old: 0, copies: 0 };

  constructor(workspace: string, now: () => number = Date.now) {
    this.#workspace = workspace;
    this.#now = now;
  }

  /**
   * The messages behind those that were compared, up to a message of the old log. `until.copies`: the last message of the
   * new log. So the part that is compared while those who write wait is as small as what they wrote meanwhile.
   * @throws as `compare`
   */
  async compareUpTo(until: Reached, { old, copies }: Logs, signal: AbortSignal): Promise<void> {
    const subjects = [workspaceFilter(this.#workspace)];
    let last = this.#reached.copies;
    const all = copies({ first: last + 1, last: until.copies, subjects }, signal);
    const expected = async function* () {
      for await (const copy of all) {
        if ((copy.moved?.sequence ?? 0) > until.old) return;
        last = copy.seq;
        if (copy.moved !== undefined) yield copy;
      }
    };
    await this.compare(old({ first: this.#reached.old + 1, last: until.old, subjects }, signal), expected());
    this.#reached = { old: until.old, copies: last };
  }

  /** Both from the same sequence of the old log on. @throws TapedeckError internal at the first difference */
  async compare(old: AsyncIterable<StoredMessage>, copies: AsyncIterable<StoredMessage>): Promise<void> {
    const iterator = copies[Symbol.asyncIterator]();
    const next = async (): Promise<StoredMessage | undefined> => {
      const { done, value } = await iterator.next();
      return done ? undefined : value;
    };
    try {
      let copy = await next();
      for await (const message of old) {
        for (; copy !== undefined && sequenceOf(copy) < message.seq; copy = await next()) this.#isMore(copy);
        const isThere = copy !== undefined && sequenceOf(copy) === message.seq;
        if (isThere && !isSame(message, copy as StoredMessage)) throw this.#differs(message, "is different");
        if (!isThere && !this.#isAboutToExpire(message)) throw this.#differs(message, "is missing");
        this.#learn(message);
        if (isThere) copy = await next();
      }
      for (; copy !== undefined; copy = await next()) this.#isMore(copy);
    } finally {
      await iterator.return?.();
    }
  }

  /** When all parts were compared. @throws TapedeckError internal */
  assertExplained(): void {
    const [session] = [...this.#more].filter((one) => !this.#erased.has(one));
    if (session === undefined) return;
    throw new TapedeckError(
      "internal",
      `the log that "${this.#workspace}" leaves has lost messages of ${session === "" ? "a source" : `session ${session}`} that were copied: it stays closed until its operator has checked it`,
    );
  }

  /** The copy's life is rounded up, so it lasts longer. Only the clocks of the two servers may differ. */
  #isAboutToExpire({ expires, expiresAtMs = Number.POSITIVE_INFINITY }: StoredMessage): boolean {
    return expires && expiresAtMs - this.#now() < aboutToExpireMs;
  }

  #isMore({ expires, data }: StoredMessage): void {
    if (!expires) this.#more.add(sessionIn(data));
  }

  /** The mark of an erasure stands behind all that it takes. */
  #learn({ subject, data }: StoredMessage): void {
    if (!subject.endsWith(".tapedeck.session")) return;
    for (const event of eventsIn(data)) {
      if (labelsOf(event).kind !== "session.erased") continue;
      const mark = decodeEvent(event);
      this.#erased.add(mark.subject || mark.session);
    }
  }

  #differs({ seq }: StoredMessage, what: string): TapedeckError {
    return new TapedeckError("internal", `message ${seq} of "${this.#workspace}" ${what} in the new shard`);
  }
}

function sequenceOf({ moved }: StoredMessage): number {
  return moved?.sequence ?? Number.POSITIVE_INFINITY;
}

function sessionIn(data: Uint8Array): string {
  const [first] = eventsIn(data);
  return (first && sessionOf(first)) ?? "";
}

function isSame(one: StoredMessage, other: StoredMessage): boolean {
  return (
    one.subject === other.subject &&
    one.writer === other.writer &&
    one.recordedAtMs === other.recordedAtMs &&
    isDeepStrictEqual(one.cursor, other.cursor) &&
    asBuffer(eventsOf(one.data)).equals(eventsOf(other.data))
  );
}
