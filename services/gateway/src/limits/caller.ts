import type { Caller } from "../call-context.ts";
import { addressOf } from "./address.ts";
import type { PerCaller } from "./settings.ts";

/** Who asks, and from where: an address with or without its port. */
export type CountedCaller = { readonly caller: Pick<Caller, "token" | "roles">; readonly peer: string };

/** By what a caller is counted; undefined: this limit is none of theirs. */
export function callerKey(
  { caller, peer }: CountedCaller,
  { holdsForAddresses }: Pick<PerCaller, "holdsForAddresses">,
): string | undefined {
  if (caller.token !== undefined) return `token ${caller.token}`;
  // Roles without a token are those of an open endpoint: whoever comes there uses what everybody with a token shares.
  return holdsForAddresses || caller.roles !== undefined ? `address ${addressOf(peer)}` : undefined;
}
