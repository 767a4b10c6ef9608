import { isAllowedHost } from "@tapedeck/shared/service/host-names";
import { isLoopback } from "@tapedeck/shared/service/loopback";
import type { SettingsReader } from "@tapedeck/shared/service/settings";
import { isNamePart, nameForm } from "@tapedeck/shared/source";
import { type Role, roles } from "@tapedeck/shared/tokens/token";
import { z } from "zod";

/** People whose claim has this value get these roles in this workspace. */
export type Grant = {
  /** A name, or a path through objects: `realm_access.roles`. */
  readonly claim: string;
  /** The claim is this text, or a list that holds it. */
  readonly value: string;
  readonly roles: readonly Role[];
  readonly workspace: string;
};

/** An OpenID Connect provider whose people may call, without tokens of Tapedeck. */
export type ProviderSettings = {
  readonly issuer: string;
  /** `aud` of the JWTs that the API accepts. */
  readonly audience: string;
  readonly clockSkewMs: number;
  readonly nameClaim: string;
  /** The developer that a recorder records for. Undefined: no grant has the role recorder. */
  readonly developerClaim: string | undefined;
  readonly grants: readonly Grant[];
  /** Undefined: people sign in on the page with tokens only. */
  readonly page: PageSignInSettings | undefined;
};

export type PageSignInSettings = {
  readonly clientId: string;
  /** Undefined: a public client, which PKCE alone protects. */
  readonly clientSecret: string | undefined;
  /** The origin of the page, "https://tapedeck.example:7052". */
  readonly origin: string;
  readonly scopes: readonly string[];
  /** The button's text. */
  readonly title: string;
  readonly sessionMs: number;
};

export type ProviderContext = {
  readonly auth: "none" | "tokens";
  /** The workspace of grants that name none. */
  readonly workspace: string;
  readonly hosts: readonly string[];
};

const grants = z.array(
  z.strictObject({
    claim: z.string().min(1).meta({
      description: "The claim that decides: its name, or a path such as `realm_access.roles`.",
      form: "text",
    }),
    value: z.string().min(1).meta({
      description: "What the claim has to be, or to contain if it is a list; no patterns.",
      form: "text",
    }),
    roles: z
      .array(z.enum(roles))
      .min(1)
      .meta({
        description: "The roles that it gives ([which there are](team.md#the-server)).",
        form: `list of ${roles.map((role) => `\`${role}\``).join(", ")}`,
      }),
    workspace: z
      .string()
      .refine(isNamePart, `expected ${nameForm}`)
      .optional()
      .meta({ description: "The workspace in which they hold.", form: "text", defaultText: "`workspace`" }),
  }),
);

type WrittenGrants = z.infer<typeof grants>;

/** Undefined: there is no identity provider. */
export function providerSettings(read: SettingsReader, context: ProviderContext): ProviderSettings | undefined {
  const issuer = read.string("oidc.issuer", undefined, {
    description:
      "The issuer of an [OpenID Connect provider](team.md#people-of-an-identity-provider), as in its discovery document. It needs `auth: tokens`, `oidc.audience` and `oidc.grants`.",
  });
  const audience = read.string("oidc.audience", undefined, {
    description: "The audience (`aud`) that a JWT must name for the API to accept it.",
  });
  const clockSkewMs = read.duration("oidc.clockSkew", 30_000, {
    description: "How much the provider's clock may differ. At most 5 minutes.",
  });
  const nameClaim = read.string("oidc.nameClaim", "preferred_username", {
    description: "The claim with a person's name, for control calls; else `sub`.",
  });
  const developerClaim = read.string("oidc.developerClaim", undefined, {
    description: "The claim with the developer for the role `recorder`; one that people cannot change themselves.",
  });
  const written = read.custom<WrittenGrants, WrittenGrants>("oidc.grants", grants, [], {
    description: "Which claims give which roles.",
  });
  const page = pageSettings(read);
  if (issuer === undefined) {
    if (audience !== undefined || written.length > 0)
      read.addError("oidc.issuer: missing; the other oidc settings need it");
    return undefined;
  }
  const settings: ProviderSettings = {
    issuer,
    clockSkewMs,
    nameClaim,
    developerClaim,
    page,
    audience: audience ?? "",
    grants: written.map((grant) => ({ ...grant, workspace: grant.workspace ?? context.workspace })),
  };
  for (const reason of errorsIn(settings, context)) read.addError(reason);
  return settings;
}

function pageSettings(read: SettingsReader): PageSignInSettings | undefined {
  const clientId = read.string("oidc.clientId", undefined, {
    description: "Tapedeck's client id, for signing in on the page. It needs `oidc.pageUrl`.",
  });
  const clientSecret = read.string("oidc.clientSecret", undefined, {
    description: "That client's secret; none for a public client.",
  });
  const pageUrl = read.string("oidc.pageUrl", undefined, {
    description: "The page's address, such as `https://tapedeck.example:7052`.",
  });
  const scopes = read.list("oidc.scopes", ["openid", "profile"], {
    description: "The scopes that the page asks for; they include `openid`.",
  });
  const title = read.string("oidc.title", "your organization", {
    description: "The provider's name on the page's button, behind “Sign in with”.",
  });
  const sessionMs = read.duration("oidc.session", 8 * 3_600_000, {
    min: 60_000,
    description: "How long a person stays signed in on the page, even if locked out at the provider.",
  });
  if (clientId === undefined) {
    if (clientSecret !== undefined || pageUrl !== undefined) {
      read.addError("oidc.clientId: missing; oidc.clientSecret and oidc.pageUrl need it");
    }
    return undefined;
  }
  const origin = originOf(pageUrl);
  if (origin === undefined) {
    read.addError(
      pageUrl === undefined
        ? "oidc.pageUrl: missing; oidc.clientId needs it"
        : `oidc.pageUrl: "${pageUrl}" is not the address of the page: expected https://host[:port] without a path; http is for loopback alone`,
    );
  }
  if (!scopes.includes("openid")) read.addError("oidc.scopes: openid is missing");
  return { clientId, clientSecret, origin: origin ?? "", scopes, title, sessionMs };
}

function* errorsIn(settings: ProviderSettings, { auth, hosts }: ProviderContext): Generator<string, void> {
  const { issuer, audience, grants, developerClaim, clockSkewMs, page } = settings;
  if (auth === "none") yield "oidc.issuer: needs auth: tokens; auth: none needs no sign-in";
  if (!isSafeUrl(issuer)) yield `oidc.issuer: "${issuer}" is not an https address (http is for loopback alone)`;
  if (audience === "")
    yield "oidc.audience: missing; without it a JWT that was made for another service would count here";
  if (grants.length === 0) yield "oidc.grants: missing; without one no person has a role";
  if (developerClaim === undefined && grants.some(({ roles }) => roles.includes("recorder"))) {
    yield "oidc.developerClaim: missing; a grant with the role recorder needs it";
  }
  if (clockSkewMs > 300_000) yield "oidc.clockSkew: at most 5m";
  if (page !== undefined && page.origin !== "" && !isAllowedHost(new URL(page.origin).host, hosts)) {
    yield `oidc.pageUrl: "${new URL(page.origin).hostname}" is missing in gateway.hosts`;
  }
}

/** Whether what is fetched there can't be changed on its way. */
export function isSafeUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname)));
}

function originOf(pageUrl: string | undefined): string | undefined {
  const url = pageUrl === undefined ? null : URL.parse(pageUrl);
  if (url === null || !isSafeUrl(url.href)) return undefined;
  return url.pathname === "/" && url.search === "" && url.hash === "" && url.username === "" ? url.origin : undefined;
}
