import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { issueText } from "@tapedeck/shared/errors/schema-error";
import { durationForm, durationMs } from "@tapedeck/shared/service/duration";
import { nameError, namePart } from "@tapedeck/shared/source";
import type { TokenStore } from "@tapedeck/shared/tokens/store";
import {
  expiringSoon,
  type MadeToken,
  makeToken,
  renewableFrom,
  renewedToken,
  roles,
  type TokenRecord,
  tokenHash,
} from "@tapedeck/shared/tokens/token";
import { z } from "zod";
import type { Caller } from "../call-context.ts";

/** A token in answers. Its text is only in the answer to its creation. */
export type TokenJson = TokenRecord;

/** Tokens of the caller's workspace, for its admins. Everything throws TapedeckError. */
export type TokenApi = {
  create(request: unknown, caller: Caller): Promise<TokenJson & { readonly token: string }>;
  /** Newest first, expired ones too. */
  list(caller: Caller): Promise<{ readonly items: readonly TokenJson[] }>;
  revoke(id: string, caller: Caller): Promise<TokenJson>;
  /**
   * A new token in place of the caller's own, which stays valid for an hour. `text`: the caller's own. For holders of
   * any role.
   */
  renew(text: string, caller: Caller): Promise<TokenJson & { readonly token: string }>;
};

export type TokenApiDeps = {
  /** @throws TapedeckError not_ready */
  readonly store: () => Promise<TokenStore>;
  /** Records every token that was created, revoked or renewed. */
  readonly audit: (what: "token created" | "token revoked" | "token renewed", token: TokenRecord, by: Caller) => void;
};

/** The body of a request for a token. */
export const tokenRequest = z.strictObject({
  name: z.string(),
  roles: z.array(z.enum(roles)).min(1),
  developer: z.string().optional(),
  /** A duration, "90d" (the default). */
  expires: z.string().default("90d"),
  /** It is a program's. */
  machine: z.literal(true).optional(),
  /** Its holder may renew it. */
  renewable: z.literal(true).optional(),
});

export function tokenApi({ store, audit }: TokenApiDeps): TokenApi {
  /** A caller that needs no token could otherwise create one for the day on which tokens are required. */
  function workspaceOf({ roles, workspace }: Caller): string {
    if (roles !== undefined) return workspace;
    throw new TapedeckError("forbidden", "callers need no token here (auth: none), so none is created over HTTP");
  }

  return {
    async create(request, caller) {
      const workspace = workspaceOf(caller);
      const { expires, developer, machine, renewable, ...tokenRequest } = parseRequest(request);
      const lifetimeMs = durationMs(expires);
      if (lifetimeMs === undefined) throw invalidArgument(`expires: "${expires}" is not ${durationForm}`, "expires");
      const reason = developer === undefined ? undefined : nameError(developer);
      if (reason !== undefined) throw invalidArgument(`developer: the name ${reason}`, "developer");
      const made = newToken({
        ...tokenRequest,
        workspace,
        lifetimeMs,
        ...(developer !== undefined && { developer: namePart(developer) }),
        ...(machine && { machine }),
        ...(renewable && { renewable }),
      });
      await (await store()).create(made);
      audit("token created", made.record, caller);
      return { ...made.record, token: made.text };
    },

    async renew(text, caller) {
      const hash = tokenHash(text);
      const opened = await store();
      const record = hash === undefined ? undefined : (await opened.read()).entries.get(hash)?.record;
      if (hash === undefined || record === undefined) {
        throw new TapedeckError("forbidden", "only a token of Tapedeck can be renewed, and by its holder");
      }
      refuseRenewal(record);
      const made = await opened.renew(hash, { made: renewedToken(record), old: expiringSoon(record) });
      if (made === undefined) {
        throw new TapedeckError("unauthenticated", "this token was revoked or renewed in the meantime");
      }
      audit("token renewed", made.record, caller);
      return { ...made.record, token: made.text };
    },

    async list(caller) {
      const workspace = workspaceOf(caller);
      const all = await (await store()).list();
      return { items: all.filter((token) => token.workspace === workspace) };
    },

    async revoke(id, caller) {
      const revoked = await (await store()).revoke(id, workspaceOf(caller));
      if (revoked === undefined) throw new TapedeckError("not_found", `there is no token "${id}"`);
      audit("token revoked", revoked, caller);
      return revoked;
    },
  };
}

/** @throws TapedeckError forbidden for a token that can't be renewed, or not yet */
function refuseRenewal(record: TokenRecord): void {
  if (record.renewable !== true) {
    const message =
      "this token can't be renewed by its holder: an admin creates a new one, with --renewable if that should change";
    throw new TapedeckError("forbidden", message);
  }
  const from = renewableFrom(record);
  if (Date.now() >= from) return;
  throw new TapedeckError(
    "forbidden",
    `this token can be renewed in the second half of its life, from ${new Date(from).toISOString()} on`,
  );
}

function parseRequest(request: unknown): z.infer<typeof tokenRequest> {
  const result = tokenRequest.safeParse(request, { error: issueText });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const field = issue?.path.join(".") ?? "";
  throw invalidArgument(`${field === "" ? "body" : field}: ${issue?.message}`, field);
}

function newToken(request: Parameters<typeof makeToken>[0]): MadeToken {
  try {
    return makeToken(request);
  } catch (cause) {
    if (cause instanceof RangeError) throw invalidArgument(cause.message);
    throw cause;
  }
}
