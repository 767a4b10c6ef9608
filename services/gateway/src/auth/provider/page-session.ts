import { hkdfSync } from "node:crypto";
import { EncryptJWT, jwtDecrypt } from "jose";
import { z } from "zod";
import type { Person } from "./claims.ts";

/** Turns a value into text that only gateways with the same key can turn back, until it expires. */
export type Sealed<T> = {
  seal(value: T, lifetimeMs: number): Promise<string>;
  /** Undefined for what was not sealed with this key for this purpose, and for what has expired. */
  open(text: string): Promise<(T & { readonly expiresAtMs: number }) | undefined>;
};

const person = z.object({
  subject: z.string().min(1),
  name: z.string(),
  developer: z.string().optional(),
  has: z.array(z.tuple([z.string(), z.string()])),
});

/** A sign-in that was started in this browser: what the provider's answer has to match, and where to go then. */
const startedSignIn = z.object({ state: z.string(), nonce: z.string(), verifier: z.string(), to: z.string() });

export type StartedSignIn = Readonly<z.infer<typeof startedSignIn>>;

/** The content of the page's cookie for a person of this provider. A session of another provider is not accepted. */
export function pageSessions(servicesKey: string, issuer: string): Sealed<Person> {
  return sealed("tapedeck page session", { servicesKey, issuer, schema: person as z.ZodType<Person> });
}

export function startedSignIns(servicesKey: string, issuer: string): Sealed<StartedSignIn> {
  return sealed("tapedeck begun sign-in", { servicesKey, issuer, schema: startedSignIn });
}

type Sealing<T> = { readonly servicesKey: string; readonly issuer: string; readonly schema: z.ZodType<T> };

/** Each purpose has a key of its own, so that none opens what was sealed for another. */
function sealed<T extends object>(purpose: string, { servicesKey, issuer, schema }: Sealing<T>): Sealed<T> {
  const key = Buffer.from(hkdfSync("sha256", servicesKey, "", purpose, 32));
  return {
    seal: (value, lifetimeMs) =>
      new EncryptJWT({ value })
        .setProtectedHeader({ alg: "dir", enc: "A256GCM" })
        .setIssuer(issuer)
        .setExpirationTime(new Date(Date.now() + lifetimeMs))
        .encrypt(key),
    async open(text) {
      try {
        const { payload } = await jwtDecrypt(text, key, {
          issuer,
          requiredClaims: ["exp"],
          keyManagementAlgorithms: ["dir"],
          contentEncryptionAlgorithms: ["A256GCM"],
        });
        return { ...schema.parse(payload.value), expiresAtMs: (payload.exp ?? 0) * 1_000 };
      } catch {
        return undefined;
      }
    },
  };
}
