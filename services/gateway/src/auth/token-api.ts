import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { durationForm, durationMs } from "@tapedeck/shared/service/settings";
import { namePart } from "@tapedeck/shared/source";
import type { TokenStore } from "@tapedeck/shared/tokens/store";
import { type MadeToken, makeToken, roles, type TokenRecord } from "@tapedeck/shared/tokens/token";
import { z } from "zod";
import type { Caller } from "../call-context.ts";

/** A token as answers show it. Its text is in the answer to its making, and nowhere else. */
export type TokenJson = TokenRecord;

/** Tokens of the caller's workspace, for its admins. Everything throws TapedeckError. */
export type TokenApi = {
  create(wish: unknown, caller: Caller): Promise<TokenJson & { readonly token: string }>;
  /** Newest first, expired ones too. */
  list(caller: Caller): Promise<{ readonly items: readonly TokenJson[] }>;
  revoke(id: string, caller: Caller): Promise<TokenJson>;
};

export type TokenApiDeps = {
  /** @throws TapedeckError not_ready */
  readonly store: () => Promise<TokenStore>;
  /** Told of every token that was made or revoked. */
  readonly audit: (what: "token created" | "token revoked", token: TokenRecord, by: Caller) => void;
};

/** What a token is wished to be, as it is asked for over HTTP. */
export const wishes = z.strictObject({
  name: z.string(),
  roles: z.array(z.enum(roles)).min(1),
  developer: z.string().optional(),
  /** A duration, "90d" (the default). */
  expires: z.string().default("90d"),
});

export function tokenApi({ store, audit }: TokenApiDeps): TokenApi {
  /** Who needs no token could else make one for the day on which one is needed. */
  function workspaceOf({ roles, workspace }: Caller): string {
    if (roles !== undefined) return workspace;
    throw new TapedeckError("forbidden", "callers need no token here (auth: none), so none is made over HTTP");
  }

  return {
    async create(wish, caller) {
      const workspace = workspaceOf(caller);
      const { expires, developer, ...wanted } = parsed(wish);
      const lifetimeMs = durationMs(expires);
      if (lifetimeMs === undefined) throw invalidArgument(`expires: "${expires}" is not ${durationForm}`, "expires");
      const made = asked({
        ...wanted,
        workspace,
        lifetimeMs,
        ...(developer !== undefined && { developer: namePart(developer) }),
      });
      await (await store()).create(made);
      audit("token created", made.record, caller);
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

function parsed(wish: unknown): z.infer<typeof wishes> {
  const result = wishes.safeParse(wish);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const field = issue?.path.join(".") ?? "";
  throw invalidArgument(`${field === "" ? "body" : field}: ${issue?.message}`, field);
}

function asked(wish: Parameters<typeof makeToken>[0]): MadeToken {
  try {
    return makeToken(wish);
  } catch (cause) {
    if (cause instanceof RangeError) throw invalidArgument(cause.message);
    throw cause;
  }
}
