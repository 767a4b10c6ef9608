import type { NatsConnection } from "nats";
import { TapedeckError } from "../errors/errors.ts";
import { pause } from "../sync/delay.ts";
import { unlessAborted } from "../sync/unless-aborted.ts";
import { openTokenStore, type TokenStore, type TokensSeen } from "./store.ts";
import { isExpired, type TokenRecord, tokenHash } from "./token.ts";

export type KnownToken = {
  readonly record: TokenRecord;
  /** Aborts, with a TapedeckError as its reason, when the token expires or is revoked. */
  readonly over: AbortSignal;
};

/** The tokens of a Tapedeck as this process knows them. */
export type KnownTokens = AsyncDisposable & {
  /**
   * A token by its text. One that is not known yet is looked for in the bucket.
   * @throws TapedeckError unauthenticated; not_ready where that can't be told: the bucket was never read, or the token is
   * unknown and the bucket is away
   */
  find(text: string): Promise<KnownToken>;
};

export type KnownTokensOptions = {
  /** The way to NATS; throws while that is away. */
  readonly line: () => { readonly connection: NatsConnection; readonly broken: AbortSignal };
  /** Told once when the bucket can't be read, and again when it can. */
  readonly warn?: (message: string, cause?: unknown) => void;
  /** How often the bucket is looked at, and expiry: what was revoked is over within this time. Default 1,000. */
  readonly lookMs?: number;
};

/** Between two looks for tokens that nobody knows, so that guessing costs NATS next to nothing. */
const leastMs = 50;

/**
 * Keeps the tokens in memory: while NATS is away those that are known go on working, and still expire. What was revoked
 * meanwhile is over as soon as NATS is back.
 */
export function knownTokens({ line, warn = () => {}, lookMs = 1_000 }: KnownTokensOptions): KnownTokens {
  const closing = new AbortController();
  const live = new Map<string, KnownToken & { readonly seq: number; readonly end: (message: string) => void }>();
  let seen: TokensSeen | undefined;
  let store: { readonly of: NatsConnection; readonly opened: Promise<TokenStore> } | undefined;
  let looking: Promise<void> | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let isAway = false;

  async function look(): Promise<void> {
    const { connection, broken } = line();
    if (store?.of !== connection) store = { of: connection, opened: openTokenStore(connection) };
    const { opened } = store;
    try {
      learn(
        await unlessAborted(
          opened.then((from) => from.read(seen)),
          broken,
        ),
      );
    } catch (error) {
      store = undefined; // the bucket may have to be made again
      throw error;
    }
  }

  function learn(now: TokensSeen): void {
    seen = now;
    for (const [hash, token] of live) {
      if (now.entries.get(hash)?.seq === token.seq) continue;
      live.delete(hash);
      token.end("the token was revoked");
    }
    for (const [hash, { seq, record }] of now.entries) {
      if (record === undefined || live.has(hash)) continue;
      const over = new AbortController();
      const end = (message: string) => over.abort(unauthenticated(message));
      live.set(hash, { record, seq, over: over.signal, end });
    }
    expire();
  }

  function expire(): void {
    for (const { record, over, end } of live.values()) {
      if (!over.aborted && isExpired(record)) end("the token has expired");
    }
  }

  /** One at a time, and not again at once. Rejects when NATS can't be asked. */
  function looked(): Promise<void> {
    looking ??= pause(Math.max(0, lookedAt + leastMs - performance.now()), closing.signal)
      .then(look)
      .finally(() => {
        lookedAt = performance.now();
        looking = undefined;
      });
    return looking;
  }

  async function keepLooking(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await looked();
        if (isAway) warn("tokens can be looked up again");
        isAway = false;
      } catch (error) {
        if (!isAway && !closing.signal.aborted) warn("tokens can't be looked up: those that are known go on", error);
        isAway = true;
      }
      await pause(lookMs, closing.signal);
    }
  }

  const expiry = setInterval(expire, lookMs);
  const looks = keepLooking();

  return {
    async find(text) {
      const hash = tokenHash(text);
      if (hash === undefined) throw unauthenticated("this is no token of Tapedeck: they begin with tdk_");
      if (seen === undefined || !live.has(hash)) {
        // What is under way may have begun before the token was made.
        await looking?.catch(() => {});
        await looked().catch((cause) => {
          throw new TapedeckError("not_ready", "tokens can't be looked up now: try again in a moment", {}, { cause });
        });
      }
      const token = live.get(hash);
      if (token === undefined)
        throw unauthenticated("this token is not known: it was revoked, or is of another Tapedeck");
      expire();
      token.over.throwIfAborted();
      return token;
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      clearInterval(expiry);
      await looks;
    },
  };
}

function unauthenticated(message: string): TapedeckError {
  return new TapedeckError("unauthenticated", message);
}
