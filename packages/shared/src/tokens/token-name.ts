import { isIP } from "node:net";
import { callerKinds } from "../audit/caller-kind.ts";
import { nameError } from "../source.ts";

/** Words that stand for a caller which is no token. */
const reserved = [...callerKinds.filter((kind) => kind !== "token"), "anonymous", "jwt", "oidc"];

const reservedName = new RegExp(`^(${reserved.join("|")})(\\s*:.*)?$`, "u");

/**
 * Why a new token can't have the name; undefined: it can. The audit log and the records of control calls name people as
 * "alice (sso.example)", programs as "nightly (machine)", users of the server as "alice on this machine", and others by their
 * address.
 */
export function tokenNameError(name: string): string | undefined {
  const unseen = nameError(name);
  if (unseen !== undefined) return unseen;
  const plain = displayedName(name);
  const [, word] = reservedName.exec(plain) ?? [];
  if (word !== undefined) return `begins with "${word}", which stands for another kind of caller: use another word`;
  if (plain.endsWith(")")) {
    return "ends with a parenthesis, as the names of people and machines in the audit log do: leave it out (--machine makes it a program's)";
  }
  if (/\bon this machine$/u.test(plain))
    return 'ends with "on this machine", as users of the server do: leave that out';
  return isAddress(plain) ? "is an address, which names callers without a token: use a word" : undefined;
}

/** What a reader sees of it. NFKC makes ASCII of its lookalikes, such as a full-width parenthesis. */
function displayedName(name: string): string {
  const seen = name.normalize("NFKC").replace(/[\p{M}\p{Default_Ignorable_Code_Point}]/gu, "");
  return seen.toLowerCase().replace(/\s+/gu, " ").trim();
}

/** With or without a port, brackets, and the family as gRPC writes it. */
function isAddress(text: string): boolean {
  const address = text.replace(/^ipv[46]:(\/\/)?/u, "");
  return [address, address.replace(/:\d+$/u, "")].some((part) => isIP(part.replace(/^\[(.*)\]$/u, "$1")) !== 0);
}
