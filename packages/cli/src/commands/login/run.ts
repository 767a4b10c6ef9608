import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { ownValue } from "@tapedeck/shared/own-value";
import { CommandError } from "../../command-error.ts";
import { print } from "../../display/output.ts";
import { httpBaseOf } from "../../gateway-address.ts";
import { gatewayUrlText, parseGatewayUrl } from "../../gateway-url.ts";
import { askAbout } from "../../targets/about.ts";
import { type Context, localContext, readContexts, writeContexts } from "../../targets/contexts.ts";
import { askHidden } from "./ask-hidden.ts";

export type LoginOptions = { readonly name?: string; readonly ca?: string; readonly grpcPort?: number };

export type LogoutOptions = { readonly all?: boolean };

/** Keeps where a Tapedeck is, and the token for it, once that has let us in. */
export async function login(url: string, options: LoginOptions): Promise<void> {
  const { env } = process;
  const gateway = parseGatewayUrl(url);
  const name = options.name ?? gateway.host;
  if (name === localContext)
    throw new CommandError(`"${localContext}" is reserved for this machine: choose another name.`);
  const whole = gatewayUrlText(gateway);
  const ca = options.ca ?? (env.TAPEDECK_CA || undefined);
  const caFrom = options.ca === undefined ? "TAPEDECK_CA" : "--ca";
  const asking = (token: string | undefined) => {
    const chosen = { gateway, grpcPort: gateway.port, token, tokenFrom: "this login", ca, caFrom };
    return askAbout(
      httpBaseOf(chosen, env),
      "give the PEM file of its authority (--ca), or the host name in the certificate",
    );
  };
  // Without the token: whether there is a Tapedeck with a good certificate is to be known before a secret is typed.
  const first = await asking(undefined);
  const token = first.auth === "none" ? undefined : await tokenFor(whole, env);
  const about = token === undefined ? first : await asking(token);

  const stored = readContexts(env);
  const context: Context = {
    url: whole,
    grpcPort: options.grpcPort ?? about.grpcPort,
    ...(token !== undefined && { token }),
    ...(ca !== undefined && { ca: resolve(ca) }),
  };
  writeContexts(env, { current: name, contexts: { ...stored.contexts, [name]: context } });
  const { token: is } = about;
  const who =
    is === undefined
      ? "which requires no token"
      : `as ${is.name} (${is.roles.join(", ")}) in workspace ${is.workspace}`;
  print(`logged in to ${whole}, ${who}; all commands now use it (context ${name})`);
}

/** Takes TAPEDECK_TOKEN, else asks in a terminal, else reads the first line of stdin. */
async function tokenFor(url: string, env: NodeJS.ProcessEnv): Promise<string> {
  const envToken = env.TAPEDECK_TOKEN?.trim() ?? "";
  if (envToken !== "") return envToken;
  const read = process.stdin.isTTY ? await askHidden(`Token for ${url}: `) : await text(process.stdin);
  const token = read.trim().split("\n")[0]?.trim() ?? "";
  if (token !== "") return token;
  throw new CommandError(
    `${url} requires a token: type it, pipe it in, or set TAPEDECK_TOKEN (an admin creates one with \`tapedeck token create\`).`,
  );
}

export function logout(named: string | undefined, { all }: LogoutOptions): void {
  const { env } = process;
  const { current, contexts } = readContexts(env);
  const names = all
    ? Object.keys(contexts)
    : [named ?? current ?? ""].filter((name) => ownValue(contexts, name) !== undefined);
  if (names.length === 0) {
    const what = named === undefined ? "you are not logged in" : `there is no context ${named}`;
    throw new CommandError(`${what}: see \`tapedeck context\`.`);
  }
  const left = Object.fromEntries(Object.entries(contexts).filter(([name]) => !names.includes(name)));
  const stays = current !== undefined && ownValue(left, current) !== undefined;
  writeContexts(env, { ...(stays && { current }), contexts: left });
  const next = stays ? `context ${current}` : "the Tapedeck server on this machine";
  print(`removed ${names.join(", ")}; commands now use ${next}`);
}
