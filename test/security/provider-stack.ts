import {
  audience,
  type ProviderServer,
  pageClient,
  startProviderServer,
} from "@tapedeck/gateway/auth/provider/testing/provider-server";
import { readConfig } from "@tapedeck/gateway/config";
import { startGateway } from "@tapedeck/gateway/gateway";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { startTokenStack, type TokenStack } from "../stack/token-stack.ts";

/** A stack whose callers may come from a real OpenID Connect provider. */
export type ProviderStack = AsyncDisposable & {
  readonly provider: ProviderServer;
  readonly tokens: TokenStack;
  /** The page's address. */
  readonly origin: string;
  /** Another gateway for the same page, as behind a balancer: "host:port". */
  readonly other: string;
};

export async function startProviderStack(): Promise<ProviderStack> {
  await using cleanup = new AsyncDisposableStack();
  const port = await ownPort();
  const origin = `http://127.0.0.1:${port}`;
  const provider = cleanup.use(await startProviderServer({ redirectUri: `${origin}/api/v1/sign-in/callback` }));
  const grants = [
    { claim: "groups", value: "developers", roles: ["viewer", "controller"] },
    { claim: "groups", value: "admins", roles: ["admin"] },
    { claim: "groups", value: "globex", roles: ["viewer"], workspace: "globex" },
  ];
  const env = {
    TAPEDECK_OIDC_ISSUER: provider.issuer,
    TAPEDECK_OIDC_AUDIENCE: audience,
    TAPEDECK_OIDC_GRANTS: JSON.stringify(grants),
    TAPEDECK_OIDC_CLIENT_ID: pageClient.id,
    TAPEDECK_OIDC_CLIENT_SECRET: pageClient.secret,
    TAPEDECK_OIDC_PAGE_URL: origin,
    TAPEDECK_OIDC_TITLE: "Acme",
  };
  const tokens = cleanup.use(await startTokenStack({ ...env, TAPEDECK_GATEWAY_HTTP_PORT: String(port) }));
  const { nats, query, ingest } = tokens.on.stack.parts;
  const ofOther = readConfig({
    env: {
      ...env,
      TAPEDECK_AUTH: "tokens",
      TAPEDECK_SERVICES_KEY: "test-key",
      TAPEDECK_WORKSPACE: "acme",
      TAPEDECK_GATEWAY_GRPC_PORT: "0",
      TAPEDECK_GATEWAY_HTTP_PORT: "0",
      TAPEDECK_NATS_URL: nats.url,
      TAPEDECK_QUERY_ADDRESS: query.addresses.grpc,
      TAPEDECK_INGEST_ADDRESS: ingest.addresses.grpc ?? "",
    },
  });
  const other = cleanup.use(await startGateway(ofOther, silentLogger)).addresses.http ?? "";
  const owned = cleanup.move();
  return { provider, tokens, origin, other, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
