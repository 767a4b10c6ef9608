import type { Caller } from "../call-context.ts";
import { addressOf } from "./address.ts";
import type { PerCaller } from "./settings.ts";

/** A caller and its address, with or without a port. */
export type CountedCaller = { readonly caller: Pick<Caller, "token" | "roles">; readonly peer: string };

/** The key under which a caller is counted; undefined: the limit does not apply to the caller. */
export function callerKey(
  { caller, peer }: CountedCaller,
  { holdsForAddresses }: Pick<PerCaller, "holdsForAddresses">,
): string | undefined {
  if (caller.token !== undefined) return `token ${caller.token}`;
  // Roles without a token come from an open endpoint, whose callers use resources that all token holders share.
  return holdsForAddresses || caller.roles !== undefined ? `address ${addressOf(peer)}` : undefined;
}
