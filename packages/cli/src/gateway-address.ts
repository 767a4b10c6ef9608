import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { type ChannelCredentials, type ChannelOptions, credentials, Metadata } from "@grpc/grpc-js";
import { isLoopback } from "@tapedeck/shared/service/loopback";
import { CommandError } from "./command-error.ts";
import type { ChosenTapedeck } from "./context/chosen-tapedeck.ts";
import { chosenTapedeck } from "./context/chosen-tapedeck.ts";
import type { GatewayUrl } from "./gateway-url.ts";
import { gatewayUrlText } from "./gateway-url.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** A gateway's gRPC address, and what every call carries. */
export type GrpcTarget = {
  /** "host:port", as grpc-js takes it. */
  readonly address: string;
  readonly credentials: ChannelCredentials;
  /** Contains `authorization` if there is a token. Belongs to one client: calls may add to it. */
  readonly metadata: Metadata;
  /** Options of a client. Addresses on this machine are never reached through a proxy. */
  readonly options: ChannelOptions;
  /** The same for the same gateway however it was written: "127.0.0.1:7051", "https://tapedeck.example:7051". */
  readonly name: string;
};

/** A gateway's HTTP address, and what every request carries. */
export type HttpBase = {
  /** "http://127.0.0.1:7052", without a slash at its end. */
  readonly base: string;
  readonly token: string | undefined;
  /** `authorization`, where there is a token. */
  readonly headers: Readonly<Record<string, string>>;
};

/**
 * Where the Tapedeck of an address takes gRPC: `http(s)://host[:port]`, as `httpBase` has it; without one, the Tapedeck that
 * is chosen. The same host, on the port that TAPEDECK_GRPC_PORT or its context says, else the one below (7052: 7051). TLS
 * trusts the PEM file in TAPEDECK_CA or of the context, else what Node.js and this system trust.
 * @throws CommandError when it is no address, is plaintext that leaves this machine (see `assertPrivate`), or the
 * certificates or the token can't be used
 */
export function grpcTarget(url?: string, env: Env = process.env): GrpcTarget {
  const chosen = chosenTapedeck(url, env);
  const { isTls, host } = chosen.gateway;
  const token = bearerOf(chosen);
  assertPrivate({ ...chosen.gateway, port: chosen.grpcPort }, env, chosen, token);
  const metadata = new Metadata();
  if (token !== undefined) metadata.set("authorization", token);
  const address = `${host}:${chosen.grpcPort}`;
  const options = isLoopback(host) ? { "grpc.enable_http_proxy": 0 } : {};
  const common = { address, metadata, options };
  if (!isTls) return { ...common, credentials: credentials.createInsecure(), name: address };
  // grpc-js names the address to the server, of which Node.js would warn on the user's terminal.
  if (isIP(host.replace(/[[\]]/g, "")) > 0) process.noDeprecation = true;
  const trusted = credentials.createSsl(Buffer.from(trustedCertificates(chosen).join("\n")));
  return { ...common, credentials: trusted, name: `https://${address}` };
}

/**
 * `http://host[:port][/path]` or `host:port` (plaintext), `https://…` (TLS); 7052 when no port is written. Makes this
 * process trust the same certificates as `grpcTarget`, as `fetch` can't be told otherwise.
 * @throws CommandError as `grpcTarget`
 */
export function httpBase(url?: string, env: Env = process.env): HttpBase {
  return httpBaseOf(chosenTapedeck(url, env), env);
}

export function httpBaseOf(chosen: ChosenTapedeck, env: Env): HttpBase {
  const bearer = bearerOf(chosen);
  assertPrivate(chosen.gateway, env, chosen, bearer);
  if (chosen.gateway.isTls) setDefaultCACertificates(trustedCertificates(chosen));
  return {
    base: gatewayUrlText(chosen.gateway),
    token: chosen.token,
    headers: bearer === undefined ? {} : { authorization: bearer },
  };
}

/** There is no flag for a token: what stands on a command line can be read by everyone on the machine. */
function bearerOf({ token, tokenFrom }: ChosenTapedeck): string | undefined {
  if (token === undefined) return undefined;
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new CommandError(`${tokenFrom} is not a token: use one exactly as \`tapedeck token create\` printed it.`);
  }
  return `Bearer ${token}`;
}

/** Plaintext stays on this machine, unless TAPEDECK_INSECURE says that the network is private; a token always does. */
function assertPrivate(
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

/** A file that is named stands alone, so that it can also say whom not to trust. */
function trustedCertificates({ ca: path }: ChosenTapedeck): readonly string[] {
  if (path === undefined) return [...getCACertificates("default"), ...getCACertificates("system")];
  const pem = readCertificates(path);
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g);
  if (found === null || !found.every(isCertificate))
    throw new CommandError(`${path} (TAPEDECK_CA or the context) holds no certificate: it must be a PEM file.`);
  return found;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}

function readCertificates(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    throw new CommandError(`${path} (TAPEDECK_CA or the context) can't be read.`);
  }
}
