import type { Role, TokenRecord } from "@tapedeck/shared/tokens/token";
import { apiAt } from "../../api/api.ts";

export type NewToken = {
  readonly name: string;
  readonly roles: readonly Role[];
  /** Default: that of the settings, or of the caller's own token. */
  readonly workspace?: string;
  readonly developer?: string;
  /** Also for what concerns all workspaces. */
  readonly everywhere?: true;
  /** A program's. */
  readonly machine?: true;
  /** Its holder may renew it. */
  readonly renewable?: true;
  /** "90d" */
  readonly expires: string;
};

/** The tokens of a Tapedeck, wherever it is. Everything throws CommandError. */
export type Tokens = AsyncDisposable & {
  readonly create: (wishes: NewToken) => Promise<TokenRecord & { readonly token: string }>;
  /** Newest first. */
  readonly list: () => Promise<readonly TokenRecord[]>;
  readonly revoke: (id: string) => Promise<TokenRecord>;
  /** A remark about tokens there. */
  readonly remark?: string;
};

/** Uses a gateway's HTTP API with an admin's token. */
export function remoteTokens(url: string | undefined): Tokens {
  const api = apiAt(url);
  return {
    create: (wishes) => api.send("POST", "/api/v1/tokens", wishes),
    list: async () => (await api.get<{ readonly items: readonly TokenRecord[] }>("/api/v1/tokens")).items,
    revoke: (id) => api.send("DELETE", `/api/v1/tokens/${encodeURIComponent(id)}`),
    [Symbol.asyncDispose]: async () => {},
  };
}
