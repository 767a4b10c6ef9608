import { ownValue } from "@tapedeck/shared/own-value";
import type { TokenRecord } from "@tapedeck/shared/tokens/token";
import { apiAt } from "../../api/api.ts";
import { CommandError } from "../../command-error.ts";
import { print, printError, printJson } from "../../display/output.ts";
import { chosenTapedeck } from "../../targets/chosen-tapedeck.ts";
import { readContexts, writeContexts } from "../../targets/contexts.ts";

export type RenewTokenOptions = { readonly url?: string; readonly json?: boolean };

/**
 * Renews the token that commands use. A login's token is replaced there; one from TAPEDECK_TOKEN is printed, because
 * the user has to set the new one.
 */
export async function renewToken({ url, json = false }: RenewTokenOptions): Promise<void> {
  const { env } = process;
  const { token, tokenFrom, context } = chosenTapedeck(url, env);
  if (token === undefined) {
    throw new CommandError("there is no token to renew: log in with `tapedeck login`, or set TAPEDECK_TOKEN.");
  }
  const made = await apiAt(url).send<TokenRecord & { readonly token: string }>("POST", "/api/v1/tokens/renew");
  const isOfLogin = context !== undefined && tokenFrom !== "TAPEDECK_TOKEN";
  if (isOfLogin) replaceIn(context, token, made.token);
  if (json) printJson(made);
  else if (!isOfLogin) print(made.token);
  const where = isOfLogin ? `; it is saved in context ${context}` : "";
  const until = new Date(made.expiresAt).toLocaleDateString("sv-SE");
  printError(`${made.name} is renewed until ${until}${where}. The old token is valid for another hour.`);
}

/** Only where the login still has the old one. */
function replaceIn(context: string, old: string, token: string): void {
  const stored = readContexts(process.env);
  const one = ownValue(stored.contexts, context);
  if (one?.token !== old) return;
  writeContexts(process.env, { ...stored, contexts: { ...stored.contexts, [context]: { ...one, token } } });
}
