import type { NatsConnection } from "nats";
import { TapedeckError } from "../errors/errors.ts";
import { abortable } from "../sync/abortable.ts";
import { delay } from "../sync/delay.ts";
import { openTokenStore, type TokenSnapshot, type TokenStore } from "./store.ts";
import { isExpired, type TokenRecord, tokenHash } from "./token.ts";

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

export type KnownTokensOptions = {
  /** The connection to NATS; throws while there is none. */
  readonly connection: () => { readonly connection: NatsConnection; readonly broken: AbortSignal };
  /** Called once when the bucket can't be read, and once when it can be read again. */
  readonly warn?: (message: string, cause?: unknown) => void;
  /** How often the bucket is read and expiry is checked: a revoked token ends within this time. Default 1,000. */
  readonly refreshMs?: number;
};

/** The shortest time between two reads, so that guessing tokens costs NATS next to nothing. */
const minReadIntervalMs = 50;

/** A log that is away for longer after our start is worth a warning. */
const startMs = 10_000;

/**
 * Keeps the tokens in memory: known tokens keep working while NATS is away, and still expire. Tokens that were revoked
 * meanwhile end as soon as NATS is back.
 */
export function knownTokens({ connection, warn = () => {}, refreshMs = 1_000 }: KnownTokensOptions): KnownTokens {
  return new TokenCache(connection, warn, refreshMs);
}

type LiveToken = KnownToken & { readonly seq: number; readonly end: (message: string) => void };

class TokenCache implements KnownTokens {
  readonly #connection: KnownTokensOptions["connection"];
  readonly #warn: NonNullable<KnownTokensOptions["warn"]>;
  readonly #intervalMs: number;
  readonly #closing = new AbortController();
  readonly #live = new Map<string, LiveToken>();
  readonly #expiry: NodeJS.Timeout;
  readonly #refreshing: Promise<void>;
  #snapshot: TokenSnapshot | undefined;
  #store: { readonly of: NatsConnection; readonly opened: Promise<TokenStore> } | undefined;
  #reading: Promise<void> | undefined;
  #lastReadAt = Number.NEGATIVE_INFINITY;

  constructor(
    connection: KnownTokensOptions["connection"],
    warn: NonNullable<KnownTokensOptions["warn"]>,
    intervalMs: number,
  ) {
    this.#connection = connection;
    this.#warn = warn;
    this.#intervalMs = intervalMs;
    this.#expiry = setInterval(() => this.#expire(), intervalMs);
    this.#refreshing = this.#refresh();
  }

  async find(text: string): Promise<KnownToken> {
    const hash = tokenHash(text);
    if (hash === undefined)
      throw unauthenticated("this is not a Tapedeck token (those begin with tdk_), or not the whole of one");
    if (this.#snapshot === undefined || !this.#live.has(hash)) await this.#readAfresh();
    const token = this.#live.get(hash);
    if (token === undefined) {
      throw unauthenticated("this token is not known: it was revoked, or is of another Tapedeck");
    }
    this.#expire();
    token.over.throwIfAborted();
    return token;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#expiry);
    await this.#refreshing;
  }

  async #refresh(): Promise<void> {
    const began = performance.now();
    let isAway = false;
    while (!this.#closing.signal.aborted) {
      try {
        await this.#readSoon();
        if (isAway) this.#warn("tokens can be looked up again");
        isAway = false;
      } catch (error) {
        // At a start the log may come a moment later.
        const isStarting = this.#snapshot === undefined && performance.now() - began < startMs;
        if (!isStarting && !isAway && !this.#closing.signal.aborted) {
          this.#warn("tokens can't be looked up: known tokens keep working", error);
        }
        isAway ||= !isStarting;
      }
      await delay(this.#intervalMs, this.#closing.signal);
    }
  }

  async #readAfresh(): Promise<void> {
    // A read that is under way may have begun before the token was created.
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
      if (snapshot.entries.get(hash)?.seq === token.seq) continue;
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

function unauthenticated(message: string): TapedeckError {
  return new TapedeckError("unauthenticated", message);
}
