import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";
import Provider, { type Configuration } from "oidc-provider";

/** A real OpenID Connect provider on a port of its own, with people, clients, and keys that a test changes. */
export type ProviderServer = AsyncDisposable & {
  readonly issuer: string;
  /** Its signing key now, private. */
  key(): JWK;
  /** Signs with a new key from now on, and no longer publishes the old one. */
  rotate(): Promise<void>;
  /** Cuts connections until it is called with false. */
  setAway(isAway: boolean): void;
  /** How often a path was requested. */
  requests(path: string): number;
  /** An access token of the API's audience, from the provider itself. */
  accessToken(): Promise<string>;
  /** A JWT as the provider would sign it, with these claims over the usual ones. Undefined takes a claim away. */
  sign(claims?: JWTPayload, header?: Readonly<Record<string, unknown>>): Promise<string>;
};

/** What the API expects in `aud`. */
export const audience = "https://tapedeck.example/api";
export const pageClient = { id: "tapedeck-page", secret: "page-secret-page-secret-page-secret" } as const;
const machineClient = { id: "nightly", secret: "machine-secret-machine-secret-machine" } as const;

/** By login name; anybody may log in with any password. */
export const groups: Readonly<Record<string, readonly string[]>> = {
  alice: ["developers"],
  root: ["developers", "admins"],
  both: ["developers", "globex"],
  [machineClient.id]: ["developers"],
};

export type ProviderServerOptions = {
  /** Where the page's client may be sent back to. */
  readonly redirectUri?: string;
  readonly port?: number;
};

export async function startProviderServer(options: ProviderServerOptions = {}): Promise<ProviderServer> {
  const { redirectUri = "http://127.0.0.1:1/callback", port = 0 } = options;
  const counts = new Map<string, number>();
  let isAway = false;
  let handle: RequestListener = () => {};
  const server = createServer((request, response) => {
    if (isAway) return void request.socket.destroy();
    const path = (request.url ?? "").split("?")[0] ?? "";
    counts.set(path, (counts.get(path) ?? 0) + 1);
    handle(request, response);
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let key: JWK = {};
  const rotate = async () => {
    key = await newKey();
    const provider = new Provider(issuer, configuration(key, redirectUri));
    handle = provider.callback() as RequestListener;
  };
  await rotate();

  return {
    issuer,
    key: () => key,
    rotate,
    setAway(away) {
      isAway = away;
      if (away) server.closeAllConnections();
    },
    requests: (path) => counts.get(path) ?? 0,
    async accessToken() {
      const basic = Buffer.from(`${machineClient.id}:${machineClient.secret}`).toString("base64");
      const answer = await fetch(`${issuer}/token`, {
        method: "POST",
        headers: { authorization: `Basic ${basic}`, "content-type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams({ grant_type: "client_credentials", resource: audience }),
      });
      const { access_token: token } = (await answer.json()) as { access_token: string };
      return token;
    },
    async sign(claims = {}, header = {}) {
      const seconds = Math.floor(Date.now() / 1_000);
      const defaultClaims = {
        iss: issuer,
        aud: audience,
        sub: "u-1",
        exp: seconds + 300,
        iat: seconds,
        groups: ["developers"],
      };
      const jwt = new SignJWT({ ...defaultClaims, preferred_username: "alice", ...claims });
      return jwt.setProtectedHeader({ alg: "RS256", kid: key.kid ?? "", ...header }).sign(key);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: crypto.randomUUID(), use: "sig", alg: "RS256" };
}

function configuration(key: JWK, redirectUri: string): Configuration {
  const groupsOf = (id: string) => [...(groups[id] ?? [])];
  return {
    jwks: { keys: [key] } as Configuration["jwks"] & object,
    clients: [
      { client_id: pageClient.id, client_secret: pageClient.secret, redirect_uris: [redirectUri] },
      {
        client_id: machineClient.id,
        client_secret: machineClient.secret,
        redirect_uris: [],
        response_types: [],
        grant_types: ["client_credentials"],
      },
    ],
    pkce: { required: () => true },
    claims: { openid: ["sub"], profile: ["preferred_username", "groups"] },
    conformIdTokenClaims: false,
    cookies: { keys: ["provider-cookies"] },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id, groups: groupsOf(id) }),
    }),
    extraTokenClaims: (_context, token) => ({ groups: groupsOf(token.clientId ?? "") }),
    features: {
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        getResourceServerInfo: () => ({
          scope: "",
          audience,
          accessTokenFormat: "jwt",
          accessTokenTTL: 300,
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
  };
}
