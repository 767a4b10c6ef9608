import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import tls from "node:tls";
import { isLoopback } from "@tapedeck/shared/service/loopback";
import { CommandError } from "./command-error.ts";
import type { GatewayUrl } from "./gateway-url.ts";
import { gatewayUrlText } from "./gateway-url.ts";
import type { ChosenTapedeck } from "./targets/chosen-tapedeck.ts";
import { chosenTapedeck } from "./targets/chosen-tapedeck.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** A gateway's HTTP address, and what every request carries. */
export type HttpBase = {
  /** "http://127.0.0.1:7052", without a slash at its end. */
  readonly base: string;
  readonly token: string | undefined;
  /** `authorization`, where there is a token. */
  readonly headers: Readonly<Record<string, string>>;
};

/**
 * `http://host[:port][/path]` or `host:port` (plaintext), `https://…` (TLS); 7052 when no port is written. Makes this
 * process trust the same certificates as `grpcTarget`, as `fetch` has no option for it.
 * @throws CommandError as `grpcTarget`
 */
export function httpBase(url?: string, env: Env = process.env): HttpBase {
  return httpBaseOf(chosenTapedeck(url, env), env);
}

export function httpBaseOf(chosen: ChosenTapedeck, env: Env): HttpBase {
  const bearer = bearerOf(chosen);
  assertPrivate(chosen.gateway, env, chosen, bearer);
  const trusted = chosen.gateway.isTls ? trustedCertificates(chosen) : undefined;
  if (trusted !== undefined) tls.setDefaultCACertificates(trusted);
  return {
    base: gatewayUrlText(chosen.gateway),
    token: chosen.token,
    headers: bearer === undefined ? {} : { authorization: bearer },
  };
}

/** There is no flag for a token: what stands on a command line can be read by everyone on the machine. */
export function bearerOf({ token, tokenFrom }: ChosenTapedeck): string | undefined {
  if (token === undefined) return undefined;
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new CommandError(`${tokenFrom} is not a token: use one exactly as \`tapedeck token create\` printed it.`);
  }
  return `Bearer ${token}`;
}

/** Plaintext stays on this machine, unless TAPEDECK_INSECURE declares the network private; a token always does. */
export function assertPrivate(
  { isTls, host, port }: GatewayUrl,
  env: Env,
  chosen: ChosenTapedeck,
  token: string | undefined,
): void {
  if (isTls || isLoopback(host)) return;
  if (token !== undefined) {
    throw new CommandError(
      `the token of ${chosen.tokenFrom} is not sent to ${host}:${port} in plaintext, which anybody on the network can read: use https://${host}:${chosen.gateway.port}.`,
    );
  }
  if (!["1", "true"].includes(env.TAPEDECK_INSECURE?.toLowerCase() ?? "")) {
    throw new CommandError(
      `${host}:${port} is not on this machine, and plaintext can be read on the network: use https://${host}:${chosen.gateway.port}, or set TAPEDECK_INSECURE=true.`,
    );
  }
}

/**
 * A named file is used alone, so that it can also exclude authorities. Undefined on a Node before 22.19, where Node's own
 * choice cannot be changed: its own authorities and NODE_EXTRA_CA_CERTS.
 * @throws CommandError for a named file on such a Node, rather than trust others
 */
export function trustedCertificates({ ca: path, caFrom }: ChosenTapedeck): readonly string[] | undefined {
  const known: Partial<typeof tls> = tls;
  if (known.setDefaultCACertificates === undefined) {
    if (path === undefined) return undefined;
    throw new CommandError(
      `${path} (${caFrom}) can be used from Node 22.19 on, and this is ${process.versions.node}: set NODE_EXTRA_CA_CERTS=${path} instead, which trusts it beside the public authorities.`,
    );
  }
  if (path === undefined) return [...tls.getCACertificates("default"), ...tls.getCACertificates("system")];
  const pem = readCertificates(path, caFrom);
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g);
  if (found === null || !found.every(isCertificate))
    throw new CommandError(`${path} (${caFrom}) holds no certificate: it must be a PEM file.`);
  return found;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}

function readCertificates(path: string, from: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    throw new CommandError(`${path} (${from}) can't be read.`);
  }
}
