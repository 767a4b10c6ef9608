import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { delay } from "@tapedeck/shared/sync/delay";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import * as openid from "openid-client";
import { isSafeUrl, type ProviderSettings } from "./settings.ts";

export type IdentityProviderOptions = {
  /** Called once when the provider can't be asked, and once when it can be again. */
  readonly warn: (message: string, cause?: unknown) => void;
  /** How old its keys may be before they are read again. Default 10 minutes. */
  readonly refreshMs?: number;
  /** The shortest time between two reads, whatever is asked. Default 10 s. */
  readonly retryMs?: number;
};

/** The provider's configuration, and the keys with which it signs now. */
type Known = { readonly configuration: openid.Configuration; readonly keyOf: ReturnType<typeof createLocalJWKSet> };

const answerMs = 5_000;

/**
 * Keeps the provider's endpoints and keys. They are read again from time to time, and when a JWT names an unknown key,
 * but never more often than `retryMs`, so that callers cannot make Tapedeck query the provider much. While the provider
 * is away, the known keys stay in use.
 */
export class IdentityProvider implements AsyncDisposable {
  readonly #settings: ProviderSettings;
  readonly #warn: IdentityProviderOptions["warn"];
  readonly #refreshMs: number;
  readonly #retryMs: number;
  readonly #closing = new AbortController();
  readonly #refreshing: Promise<void>;
  #known: Known | undefined;
  #isAway = false;
  #reading: Promise<void> | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;

  constructor(settings: ProviderSettings, { warn, refreshMs = 600_000, retryMs = 10_000 }: IdentityProviderOptions) {
    this.#settings = settings;
    this.#warn = warn;
    this.#refreshMs = refreshMs;
    this.#retryMs = retryMs;
    this.#refreshing = this.#refresh();
  }

  /** @throws TapedeckError not_ready while the provider has never been reached */
  async configuration(): Promise<openid.Configuration> {
    return (await this.#reached()).configuration;
  }

  /** The key that a JWT names. @throws TapedeckError not_ready; JOSEError if there is no such key */
  readonly keyOf: JWTVerifyGetKey = async (header, jws) => {
    const { keyOf } = await this.#reached();
    try {
      return await keyOf(header, jws);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await this.#readUnlessTooSoon();
      return (await this.#reached()).keyOf(header, jws);
    }
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#refreshing;
    await this.#reading;
  }

  async #reached(): Promise<Known> {
    if (this.#known === undefined) await this.#readUnlessTooSoon();
    if (this.#known !== undefined) return this.#known;
    throw new TapedeckError(
      "not_ready",
      `the identity provider at ${this.#settings.issuer} is not available now: try again in a moment, or use a token of Tapedeck`,
    );
  }

  async #refresh(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#readUnlessTooSoon();
      await delay(this.#isAway ? this.#retryMs : this.#refreshMs, signal);
    }
  }

  async #readUnlessTooSoon(): Promise<void> {
    if (this.#reading === undefined) {
      if (performance.now() - this.#triedAt < this.#retryMs) return;
      this.#triedAt = performance.now();
      this.#reading = this.#read().finally(() => {
        this.#reading = undefined;
      });
    }
    await this.#reading;
  }

  /** Never rejects: the last keys are used until there are newer ones. */
  async #read(): Promise<void> {
    const { issuer } = this.#settings;
    try {
      this.#known = await readProvider(this.#settings, this.#closing.signal);
      if (this.#isAway) this.#warn(`the identity provider at ${issuer} is available again`);
      this.#isAway = false;
    } catch (error) {
      if (this.#closing.signal.aborted || this.#isAway) return;
      this.#isAway = true;
      const known = this.#known === undefined ? "its users can't sign in" : "the known keys stay in use";
      this.#warn(`the identity provider at ${issuer} is not available: ${known}; tokens are not affected`, error);
    }
  }
}

async function readProvider(settings: ProviderSettings, closing: AbortSignal): Promise<Known> {
  const { issuer, audience, page, clockSkewMs } = settings;
  const isPlain = issuer.startsWith("http:");
  const configuration = await openid.discovery(
    new URL(issuer),
    // Reading the provider's keys needs no client.
    page?.clientId ?? audience,
    { [openid.clockTolerance]: clockSkewMs / 1_000 },
    page?.clientSecret === undefined ? openid.None() : withSecret(page.clientSecret),
    { timeout: answerMs / 1_000, execute: isPlain ? [openid.allowInsecureRequests] : [] },
  );
  // Otherwise the ID token's signature would not be checked, as it comes over TLS.
  openid.enableNonRepudiationChecks(configuration);
  const { jwks_uri: keysAt } = configuration.serverMetadata();
  if (keysAt === undefined || !isSafeUrl(keysAt)) throw new Error(`the provider's jwks_uri (${keysAt}) is not safe`);
  const signal = AbortSignal.any([closing, timeoutSignal(answerMs)]);
  const answer = await fetch(keysAt, { redirect: "error", signal });
  if (!answer.ok) throw new Error(`${keysAt} answered ${answer.status}`);
  return { configuration, keyOf: createLocalJWKSet((await answer.json()) as JSONWebKeySet) };
}

/** In a header, as the standard expects, unless the provider takes the body only. */
function withSecret(secret: string): openid.ClientAuth {
  return (server, ...request) => {
    const { token_endpoint_auth_methods_supported: methods = ["client_secret_basic"] } = server;
    const isInBody = !methods.includes("client_secret_basic") && methods.includes("client_secret_post");
    return (isInBody ? openid.ClientSecretPost(secret) : openid.ClientSecretBasic(secret))(server, ...request);
  };
}
