import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Role } from "@tapedeck/shared/tokens/token";
import type { Caller } from "../call-context.ts";

/** Which roles include another one; admin includes all. */
const including: Readonly<Record<Role, readonly Role[]>> = {
  viewer: ["viewer", "controller", "admin"],
  controller: ["controller", "admin"],
  recorder: ["recorder", "admin"],
  admin: ["admin"],
};

/** Without authentication a caller has no roles, and may do everything. */
export function mayAs(role: Role, { roles }: Pick<Caller, "roles">): boolean {
  return roles === undefined || including[role].some((one) => roles.has(one));
}

/** @throws TapedeckError forbidden */
export function requireRole(role: Role, caller: Pick<Caller, "roles" | "token">): void {
  if (mayAs(role, caller)) return;
  if (caller.token === undefined) {
    throw new TapedeckError(
      "forbidden",
      `this needs a token with the role ${role}: without one this address is read-only`,
    );
  }
  const has = [...(caller.roles ?? [])].join(", ");
  throw new TapedeckError("forbidden", `this needs a token with the role ${role}; this one has ${has}`);
}
