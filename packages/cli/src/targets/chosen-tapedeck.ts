import { ownValue } from "@tapedeck/shared/own-value";
import { CommandError } from "../command-error.ts";
import { type GatewayUrl, gatewayUrlText, parseGatewayUrl } from "../gateway-url.ts";
import { type Context, readContexts } from "./contexts.ts";
import { localTapedeck } from "./local-tapedeck.ts";

type Env = Readonly<Record<string, string | undefined>>;

/**
 * The Tapedeck that a command is meant for. It has one address, that of HTTP, and gRPC is on the same host: with two
 * addresses, a user who sets one of them would send recordings elsewhere than the rest.
 */
export type ChosenTapedeck = {
  readonly gateway: GatewayUrl;
  readonly grpcPort: number;
  /** TAPEDECK_TOKEN, else the token of the context that has this very address. */
  readonly token: string | undefined;
  /** Path of a PEM file. */
  readonly ca: string | undefined;
  /** Origin of `ca`, for people. */
  readonly caFrom: string;
  /** Origin of the token, for people. */
  readonly tokenFrom: string;
  /** The context that has this very address. */
  readonly context?: string;
};

/**
 * The named one (`--url`, TAPEDECK_URL), else the context of the last login, else this machine's.
 * @throws CommandError for an address, a port or a file of contexts that is not valid
 */
export function chosenTapedeck(named: string | undefined, env: Env): ChosenTapedeck {
  const { current, contexts } = readContexts(env);
  const url = named || env.TAPEDECK_URL || undefined;
  if (url !== undefined) {
    const gateway = parseGatewayUrl(url);
    const known = Object.entries(contexts).find(([, one]) => isSame(parseGatewayUrl(one.url), gateway));
    return tapedeckAt(gateway, known, env);
  }
  const chosen = current === undefined ? undefined : ownValue(contexts, current);
  if (current !== undefined && chosen !== undefined)
    return tapedeckAt(parseGatewayUrl(chosen.url), [current, chosen], env);
  const here = localTapedeck(env);
  return { ...tapedeckAt(parseGatewayUrl(here.url), undefined, env), grpcPort: portOf(env) ?? here.grpcPort };
}

/** Whether another Tapedeck is meant than the one of this machine's settings and data folder. */
export function isElsewhere(named: string | undefined, env: Env): boolean {
  const { current, contexts } = readContexts(env);
  return Boolean(named || env.TAPEDECK_URL) || (current !== undefined && ownValue(contexts, current) !== undefined);
}

/** Names the Tapedeck that is chosen, for people: "https://tapedeck.example:7052 (context team)". */
export function chosenText(named: string | undefined, env: Env): string {
  const { gateway, context } = chosenTapedeck(named, env);
  return `${gatewayUrlText(gateway)}${context === undefined ? "" : ` (context ${context})`}`;
}

function tapedeckAt(
  gateway: GatewayUrl,
  known: readonly [name: string, Context] | undefined,
  env: Env,
): ChosenTapedeck {
  const [name, context] = known ?? [];
  const envToken = env.TAPEDECK_TOKEN?.trim() || undefined;
  return {
    gateway,
    grpcPort: portOf(env) ?? context?.grpcPort ?? gateway.port - 1,
    token: envToken ?? context?.token,
    ca: env.TAPEDECK_CA || context?.ca,
    caFrom: env.TAPEDECK_CA || name === undefined ? "TAPEDECK_CA" : `context ${name}`,
    ...(name !== undefined && { context: name }),
    tokenFrom: envToken !== undefined || name === undefined ? "TAPEDECK_TOKEN" : `context ${name}`,
  };
}

function portOf(env: Env): number | undefined {
  const text = env.TAPEDECK_GRPC_PORT ?? "";
  if (text === "") return undefined;
  const port = Number(text);
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port;
  throw new CommandError(`TAPEDECK_GRPC_PORT is not a port: "${text}".`);
}

function isSame(one: GatewayUrl, other: GatewayUrl): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
