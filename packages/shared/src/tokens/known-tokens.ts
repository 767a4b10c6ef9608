import type { NatsConnection } from "nats";
import { TapedeckError } from "../errors/errors.ts";
import { abortable } from "../sync/abortable.ts";
import { delay } from "../sync/delay.ts";
import { startInterval, stopTimer, type Timer } from "../sync/timers.ts";
import { openTokenStore, type TokenSnapshot, type TokenStore } from "./store.ts";
import { haveSameRights, isExpired, type TokenRecord, tokenHash, tokenLength, tokenPrefix } from "./token.ts";

/** A token that the store has, as it is known here. */
export type KnownToken = {
  readonly record: TokenRecord;
  /** Aborts, with a TapedeckError as its reason, when the token expires or is revoked. */
  readonly over: AbortSignal;
};

/** The tokens of a Tapedeck as this process knows them. */
export type KnownTokens = AsyncDisposable & {
  /**
   * Finds a token by its text; reads the bucket first if the token is not known.
   * @throws TapedeckError unauthenticated; not_ready if the bucket was never read, or if it can't be read now and the
   * token is unknown
   */
  find(text: string): Promise<KnownToken>;
};

/** Where tokens are stored, and how they are read. */
export type KnownTokensOptions = {
  /** The connection to NATS; throws while there is none. */
  readonly connection: () => { readonly connection: NatsConnection; readonly broken: AbortSignal };
  /** Called once when the bucket can't be read, and once when it can be read again. */
  readonly warn?: (message: string, cause?: unknown) => void;
  /** How often the bucket is read and expiry is checked: a revoked token ends within this time. Default 1,000. */
  readonly refreshMs?: number;
  /** How long the first read may take before that is worth a warning: NATS may be starting. Default 10,000. */
  readonly startMs?: number;
};

/** The shortest time between two reads, so that guessing tokens costs NATS next to nothing. */
const minReadIntervalMs = 50;

/**
 * Keeps the tokens in memory: known tokens keep working while NATS is away, and still expire. Tokens that were revoked
 * meanwhile end as soon as NATS is back. The bucket is polled, because a watch can go stale silently: a revoked token
 * would stay valid.
 */
export function knownTokens(options: KnownTokensOptions): KnownTokens {
  return new TokenCache(options);
}

type LiveToken = KnownToken & { readonly seq: number; readonly end: (message: string) => void };

class TokenCache implements KnownTokens {
  readonly #connection: KnownTokensOptions["connection"];
  readonly #warn: NonNullable<KnownTokensOptions["warn"]>;
  readonly #intervalMs: number;
  readonly #startMs: number;
  readonly #closing = new AbortController();
  readonly #live = new Map<string, LiveToken>();
  readonly #expiry: Timer;
  readonly #refreshing: Promise<void>;
  #snapshot: TokenSnapshot | undefined;
  #store: { readonly of: NatsConnection; readonly opened: Promise<TokenStore> } | undefined;
  #reading: Promise<void> | undefined;
  #lastReadAt = Number.NEGATIVE_INFINITY;

  constructor({ connection, warn = () => {}, refreshMs = 1_000, startMs = 10_000 }: KnownTokensOptions) {
    this.#connection = connection;
    this.#warn = warn;
    this.#intervalMs = refreshMs;
    this.#startMs = startMs;
    this.#expiry = startInterval(() => this.#expire(), refreshMs);
    this.#refreshing = this.#refresh();
  }

  async find(text: string): Promise<KnownToken> {
    const hash = tokenHash(text);
    if (hash === undefined) throw unauthenticated(wrongForm(text));
    if (this.#snapshot === undefined || !this.#live.has(hash)) await this.#readAfresh();
    const token = this.#live.get(hash);
    if (token === undefined) {
      throw unauthenticated("this token is unknown: it was revoked, or belongs to another Tapedeck");
    }
    this.#expire();
    token.over.throwIfAborted();
    return token;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    stopTimer(this.#expiry);
    await this.#refreshing;
  }

  async #refresh(): Promise<void> {
    let isAway = false;
    const started = performance.now();
    while (!this.#closing.signal.aborted) {
      try {
        await this.#readSoon();
        if (isAway) this.#warn("tokens can be looked up again");
        isAway = false;
      } catch (error) {
        const isStarting = this.#snapshot === undefined && performance.now() - started < this.#startMs;
        if (!isAway && !isStarting && !this.#closing.signal.aborted) {
          this.#warn("tokens can't be looked up: known tokens keep working", error);
          isAway = true;
        }
      }
      await delay(this.#intervalMs, this.#closing.signal);
    }
  }

  async #readAfresh(): Promise<void> {
    // A read in progress may have started before the token was created.
    await this.#reading?.catch(() => {});
    await this.#readSoon().catch((cause) => {
      throw new TapedeckError("not_ready", "tokens can't be looked up now: try again in a moment", {}, { cause });
    });
  }

  /** Shares a read that is under way, and keeps the shortest interval. Rejects when NATS can't be asked. */
  #readSoon(): Promise<void> {
    const waitMs = Math.max(0, this.#lastReadAt + minReadIntervalMs - performance.now());
    this.#reading ??= delay(waitMs, this.#closing.signal)
      .then(() => this.#read())
      .finally(() => {
        this.#lastReadAt = performance.now();
        this.#reading = undefined;
      });
    return this.#reading;
  }

  async #read(): Promise<void> {
    const { connection, broken } = this.#connection();
    if (this.#store?.of !== connection) this.#store = { of: connection, opened: openTokenStore(connection) };
    const { opened } = this.#store;
    try {
      const read = opened.then((store) => store.read(this.#snapshot));
      this.#accept(await abortable(read, broken));
    } catch (error) {
      this.#store = undefined; // the bucket may have to be created again
      throw error;
    }
  }

  #accept(snapshot: TokenSnapshot): void {
    this.#snapshot = snapshot;
    for (const [hash, token] of this.#live) {
      const entry = snapshot.entries.get(hash);
      if (entry?.seq === token.seq) continue;
      if (entry?.record !== undefined && haveSameRights(entry.record, token.record)) {
        // It was renewed: work under way continues until its new end.
        this.#live.set(hash, { ...token, record: entry.record, seq: entry.seq });
        continue;
      }
      this.#live.delete(hash);
      token.end("the token was revoked");
    }
    for (const [hash, { seq, record }] of snapshot.entries) {
      if (record === undefined || this.#live.has(hash)) continue;
      const over = new AbortController();
      const end = (message: string) => over.abort(unauthenticated(message));
      this.#live.set(hash, { record, seq, over: over.signal, end });
    }
    this.#expire();
  }

  #expire(): void {
    for (const { record, over, end } of this.#live.values()) {
      if (!over.aborted && isExpired(record)) end("the token has expired");
    }
  }
}

function wrongForm(text: string): string {
  if (!text.startsWith(tokenPrefix)) return `this is not a Tapedeck token: those begin with ${tokenPrefix}`;
  const has = `it has ${text.length} characters, and a token has ${tokenLength}`;
  if (text.length < tokenLength) return `this token is incomplete: ${has}`;
  if (text.length > tokenLength) return `this token is too long: ${has}`;
  return "this is not a Tapedeck token: it has characters that tokens never have";
}

function unauthenticated(message: string): TapedeckError {
  return new TapedeckError("unauthenticated", message);
}
