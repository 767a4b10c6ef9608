import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Authenticator } from "../auth/authenticator.ts";
import { addressOf } from "./address.ts";
import { inSeconds, rate } from "./rate.ts";

/**
 * Makes an address that repeatedly shows unknown tokens wait. A valid token is accepted all the same: an address may be
 * a proxy with a whole team behind it, and 256 random bits can't be guessed, however many attempts are allowed.
 */
export function limitedAuthenticator(authenticate: Authenticator, refusalsPerMinute: number): Authenticator {
  const { count } = rate(60);
  return async (credentials) => {
    try {
      return await authenticate(credentials);
    } catch (refusal) {
      if (!(refusal instanceof TapedeckError) || refusal.code !== "unauthenticated") throw refusal;
      const now = await count(addressOf(credentials.peer));
      if (now.used <= refusalsPerMinute) throw refusal;
      const message = `${refusal.message}; and there were more than ${refusalsPerMinute} such requests in a minute: wait before the next request`;
      throw new TapedeckError("limit_exceeded", message, {}, { retryAfter: inSeconds(now), cause: refusal });
    }
  };
}
