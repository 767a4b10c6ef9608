import type { TokenRecord } from "@tapedeck/shared/tokens/token";
import { apiAt } from "../../api/api.ts";
import type { Tokens } from "./tokens.ts";

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
