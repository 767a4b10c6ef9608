import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { ownValue } from "@tapedeck/shared/own-value";
import { namePart } from "@tapedeck/shared/source";
import type { Caller, Role } from "../../call-context.ts";
import type { Grant, ProviderSettings } from "./settings.ts";

/** The claims of a JWT whose signature and times are good. */
export type Claims = Readonly<Record<string, unknown>>;

/** What Tapedeck keeps of a person's claims: enough to decide again with other settings, and no more. */
export type Person = {
  readonly subject: string;
  readonly name: string;
  readonly developer?: string;
  /** The values of claims that a grant requires. */
  readonly has: readonly (readonly [claim: string, value: string])[];
};

type Mapping = Pick<ProviderSettings, "issuer" | "grants" | "nameClaim" | "developerClaim">;

/** The longest name of a person. */
const nameLength = 80;

/** @throws TapedeckError forbidden if no grant is met: the sentence names the claims that it checked */
export function personOf(claims: Claims, settings: Mapping): Person {
  const { grants, nameClaim, developerClaim } = settings;
  const subject = textsAt(claims, "sub")[0] ?? "";
  const name = printable(textsAt(claims, nameClaim)[0] ?? subject);
  const has = grants.filter(({ claim, value }) => textsAt(claims, claim).includes(value));
  if (has.length === 0) throw forbidden(`${name} has no access here: ${lackOf(claims, grants)}`);
  const developer = developerClaim === undefined ? undefined : textsAt(claims, developerClaim)[0];
  return {
    subject,
    name,
    has: has.map(({ claim, value }) => [claim, value] as const),
    ...(developer !== undefined && { developer: namePart(developer) }),
  };
}

/**
 * A person as a caller. Never one of all workspaces: only a token that was made on the server is.
 * @throws TapedeckError forbidden if the grants give no role, roles in several workspaces, or a recorder no developer
 */
export function callerFrom({ subject, name, developer, has }: Person, settings: Mapping): Caller {
  const met = settings.grants.filter(({ claim, value }) => has.some((one) => one[0] === claim && one[1] === value));
  const [workspace, ...others] = new Set(met.map((grant) => grant.workspace));
  if (workspace === undefined) throw forbidden(`${name} no longer has access here: sign in again`);
  if (others.length > 0) {
    const all = [workspace, ...others].join(" and ");
    throw forbidden(
      `oidc.grants give ${name} roles in several workspaces (${all}), but a caller has only one: grant roles in one workspace`,
    );
  }
  const roles = new Set<Role>(met.flatMap((grant) => grant.roles));
  if (roles.has("recorder") && developer === undefined) {
    throw forbidden(
      `${name} may record, but the claim "${settings.developerClaim}", which says whose work it is, is missing`,
    );
  }
  return {
    workspace,
    roles,
    who: `${name} (${new URL(settings.issuer).host})`,
    kind: "person",
    token: `${settings.issuer} ${subject}`,
    ...(developer !== undefined && { developer }),
  };
}

/** The texts of a claim, which is one or a list. An address that the provider has not verified is none. */
export function textsAt(claims: Claims, path: string): readonly string[] {
  if (path === "email" && claims.email_verified !== true) return [];
  return [valueAt(claims, path)].flat().filter((value) => typeof value === "string" && value !== "") as string[];
}

/** Names of claims may have dots themselves, as "https://acme.example/roles" has. */
function valueAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return ownValue(claims, path);
  let at: unknown = claims;
  for (const step of path.split(".")) {
    if (typeof at !== "object" || at === null) return undefined;
    at = ownValue(at as Claims, step);
  }
  return at;
}

function lackOf(claims: Claims, grants: readonly Grant[]): string {
  const unmet = [...Map.groupBy(grants, ({ claim }) => claim)].map(([claim, same]) => {
    const expected = [...new Set(same.map(({ value }) => `"${value}"`))].slice(0, 10).join(" or ");
    if (claim === "email" && claims.email_verified !== true) return `"email" is not verified (email_verified)`;
    const isThere = textsAt(claims, claim).length > 0;
    return isThere
      ? `"${claim}" does not have ${expected}`
      : `there is no claim "${claim}", which should have ${expected}`;
  });
  return `no entry of oidc.grants matches (${unmet.join("; ")})`;
}

/** Without control characters, and bounded: it is written into logs. */
function printable(name: string): string {
  return name.replace(/\p{C}/gu, "").slice(0, nameLength);
}

function forbidden(message: string): TapedeckError {
  return new TapedeckError("forbidden", message);
}
