import { createHash, randomBytes } from "node:crypto";
import { z } from "zod";
import { issueText } from "../errors/schema-error.ts";
import { isNamePart, nameForm } from "../source.ts";
import { tokenNameError } from "./token-name.ts";

/** The permissions of a token's bearer (docs/team.md). */
export const roles = ["viewer", "controller", "recorder", "admin"] as const;

/** viewer: read. controller: that, and call what changes the upstream. recorder: push. admin: all, and manage tokens. */
export type Role = (typeof roles)[number];

const namePart = z.string().refine(isNamePart, `expected ${nameForm}`);

/** The stored part of a token, by the SHA-256 of its text; the text itself is not stored. */
export const tokenRecord = z.object({
  /** Names the token when it is revoked: 12 hex digits. */
  id: z.string().min(1).max(64),
  /** What it is for; the control calls made with it are recorded under this name. */
  name: z
    .string()
    .min(1)
    .max(100)
    .regex(/^\P{Cc}+$/u, "expected no control characters"),
  /** The token gives access to this workspace only. */
  workspace: namePart,
  roles: z.array(z.enum(roles)).min(1),
  /** The developer whose work a recorder's token records. */
  developer: namePart.optional(),
  /** An admin's: also for what concerns all workspaces, which is to back up and to rebuild. */
  everywhere: z.literal(true).optional(),
  /** A program holds it, and no person: its calls are recorded as "<name> (machine)". */
  machine: z.literal(true).optional(),
  /** Its holder may take a new one for it before it expires, which keeps its id. */
  renewable: z.literal(true).optional(),
  /** RFC 3339, UTC. */
  createdAt: z.iso.datetime(),
  /** From this moment on the token is invalid. */
  expiresAt: z.iso.datetime(),
});

/** What the store has of a token. It has neither the token nor a part of it. */
export type TokenRecord = Readonly<z.infer<typeof tokenRecord>>;

/** What a new token is to permit, and for how long. */
export type TokenRequest = Omit<TokenRecord, "id" | "createdAt" | "expiresAt"> & { readonly lifetimeMs: number };

/** A new token with its record. */
export type MadeToken = {
  /** Shown once, to the person who requested it. */
  readonly text: string;
  readonly hash: string;
  readonly record: TokenRecord;
};

/** `tdk_` and 32 random bytes in base64url. */
const shape = /^tdk_[A-Za-z0-9_-]{43}$/;

/** Every token begins with this. */
export const tokenPrefix = "tdk_";
/** The number of characters of a token. */
export const tokenLength = 47;

/** The longest lifetime of a token: ten years. */
const longestLifetimeMs = 3_650 * 86_400_000;

/** @throws RangeError one sentence about what such a token lacks */
export function makeToken({ lifetimeMs, ...request }: TokenRequest, now = Date.now()): MadeToken {
  if (request.roles.includes("recorder") && request.developer === undefined) {
    throw new RangeError("a token with the role recorder needs a developer: whose work is recorded with it");
  }
  if (request.everywhere && !request.roles.includes("admin")) {
    throw new RangeError("a token for all workspaces needs the role admin");
  }
  if (request.everywhere && request.renewable) {
    throw new RangeError("a token for all workspaces can't be renewed by its holder: create a new one on the server");
  }
  if (!(lifetimeMs > 0 && lifetimeMs <= longestLifetimeMs)) {
    throw new RangeError("a token has to expire, within ten years");
  }
  const record = tokenRecord.safeParse(
    {
      ...request,
      roles: roles.filter((role) => request.roles.includes(role)),
      id: randomBytes(6).toString("hex"),
      createdAt: new Date(now).toISOString(),
      expiresAt: new Date(now + lifetimeMs).toISOString(),
    },
    { error: issueText },
  );
  if (!record.success) {
    const [issue] = record.error.issues;
    throw new RangeError(`${issue?.path.join(".")}: ${issue?.message}`);
  }
  const reason = tokenNameError(request.name);
  if (reason !== undefined) throw new RangeError(`name: ${JSON.stringify(request.name)} ${reason}`);
  return withText(record.data);
}

/** How long a token stays valid beside its renewal, so that all its holders can change over. */
const renewalOverlapMs = 3_600_000;

/** From when on a token may be renewed: the second half of its life, so that renewing stays rare. */
export function renewableFrom({ createdAt, expiresAt }: TokenRecord): number {
  return (Date.parse(createdAt) + Date.parse(expiresAt)) / 2;
}

/** A token with the same rights, id and length of life as another, from now on. */
export function renewedToken(record: TokenRecord, now = Date.now()): MadeToken {
  const lifetimeMs = Date.parse(record.expiresAt) - Date.parse(record.createdAt);
  return withText({
    ...record,
    createdAt: new Date(now).toISOString(),
    expiresAt: new Date(now + lifetimeMs).toISOString(),
  });
}

/** The record of a token that was renewed: it ends soon, if it would not have anyway, and is not renewed again. */
export function expiringSoon({ renewable: _, ...record }: TokenRecord, now = Date.now()): TokenRecord {
  const end = Math.min(Date.parse(record.expiresAt), now + renewalOverlapMs);
  return { ...record, expiresAt: new Date(end).toISOString() };
}

/** Whether two records let their holders do the same. */
export function haveSameRights(one: TokenRecord, other: TokenRecord): boolean {
  const rightsOf = ({ id, workspace, roles, developer, everywhere }: TokenRecord) =>
    JSON.stringify([id, workspace, roles, developer, everywhere]);
  return rightsOf(one) === rightsOf(other);
}

function withText(record: TokenRecord): MadeToken {
  const text = `tdk_${randomBytes(32).toString("base64url")}`;
  return { text, hash: sha256(text), record };
}

/** The key that a token is stored under; undefined if the text can't be a token. */
export function tokenHash(text: string): string | undefined {
  return shape.test(text) ? sha256(text) : undefined;
}

/** Whether the token's time is over. */
export function isExpired({ expiresAt }: TokenRecord, now = Date.now()): boolean {
  return Date.parse(expiresAt) <= now;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
