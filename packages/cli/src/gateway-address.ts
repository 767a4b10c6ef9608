import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { type ChannelCredentials, type ChannelOptions, credentials, Metadata } from "@grpc/grpc-js";
import { CommandError } from "./command-error.ts";
import { isLoopback, type Place, parsePlace } from "./gateway-place.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Where a gateway takes gRPC calls, and what goes with every call. */
export type GrpcTarget = {
  /** "host:port", as grpc-js takes it. */
  readonly address: string;
  readonly credentials: ChannelCredentials;
  /** With `authorization`, where there is a token. Made for one client: calls may add to it. */
  readonly metadata: Metadata;
  /** Of a client: what is on this machine is not asked through a proxy. */
  readonly options: ChannelOptions;
  /** The same for the same gateway however it was written: "127.0.0.1:7051", "https://tapedeck.example:7051". */
  readonly name: string;
};

/** Where a gateway's HTTP is, and what goes with every request. */
export type HttpBase = {
  /** "http://127.0.0.1:7052", without a slash at its end. */
  readonly base: string;
  /** `authorization`, where there is a token. */
  readonly headers: Readonly<Record<string, string>>;
};

/**
 * `host:port` (plaintext) or `https://host[:port]` (TLS; 7051 when no port is written). TLS trusts the PEM file in
 * TAPEDECK_CA, else what Node.js and this system trust. The token is that of `bearer`.
 * @throws CommandError when it is no address, is plaintext that leaves this machine (see `assertPrivate`), or TAPEDECK_CA
 * or TAPEDECK_TOKEN can't be used
 */
export function grpcTarget(text: string, env: Env = process.env): GrpcTarget {
  const place = parsePlace(text, "grpc");
  const token = bearer(env);
  assertPrivate(place, env, token);
  const metadata = new Metadata();
  if (token !== undefined) metadata.set("authorization", token);
  const address = `${place.host}:${place.port}`;
  const options = isLoopback(place.host) ? { "grpc.enable_http_proxy": 0 } : {};
  const common = { address, metadata, options };
  if (!place.isTls) return { ...common, credentials: credentials.createInsecure(), name: address };
  // grpc-js names the address to the server, of which Node.js would warn on the user's terminal.
  if (isIP(place.host.replace(/[[\]]/g, "")) > 0) process.noDeprecation = true;
  const trusted = credentials.createSsl(Buffer.from(trustedCertificates(env).join("\n")));
  return { ...common, credentials: trusted, name: `https://${address}` };
}

/**
 * `http://host[:port][/path]` (plaintext), `https://…` (TLS), or `host:port`; 7052 when no port is written. Makes this
 * process trust the same certificates as `grpcTarget`, as `fetch` can't be told otherwise.
 * @throws CommandError as `grpcTarget`
 */
export function httpBase(text: string, env: Env = process.env): HttpBase {
  const place = parsePlace(text, "http");
  const token = bearer(env);
  assertPrivate(place, env, token);
  if (place.isTls) setDefaultCACertificates(trustedCertificates(env));
  const base = `${place.isTls ? "https" : "http"}://${place.host}:${place.port}${place.path}`;
  return { base, headers: token === undefined ? {} : { authorization: token } };
}

/**
 * "Bearer <token>" of TAPEDECK_TOKEN; undefined without one. There is no flag for it: what stands on a command line can
 * be read by everyone on the machine.
 * @throws CommandError for what can't be a token, which it does not show
 */
export function bearer(env: Env = process.env): string | undefined {
  const token = env.TAPEDECK_TOKEN?.trim() ?? "";
  if (token === "") return undefined;
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new CommandError("TAPEDECK_TOKEN is not a token: give it one as `tapedeck token` wrote it.");
  }
  return `Bearer ${token}`;
}

/** Plaintext stays on this machine, unless TAPEDECK_INSECURE says that the network is private; a token always does. */
function assertPrivate({ isTls, host, port }: Place, env: Env, token: string | undefined): void {
  if (isTls || isLoopback(host)) return;
  if (token !== undefined) {
    throw new CommandError(
      `the token of TAPEDECK_TOKEN is not sent to ${host}:${port} in plaintext, which anybody on the way can read: write https://${host}:${port}.`,
    );
  }
  if (!["1", "true"].includes(env.TAPEDECK_INSECURE?.toLowerCase() ?? "")) {
    throw new CommandError(
      `${host}:${port} is not on this machine, and plaintext can be read on the way: write https://${host}:${port}, or set TAPEDECK_INSECURE=true.`,
    );
  }
}

/** A file that is named stands alone, so that it can also say whom not to trust. */
function trustedCertificates(env: Env): readonly string[] {
  const path = env.TAPEDECK_CA ?? "";
  if (path === "") return [...getCACertificates("default"), ...getCACertificates("system")];
  const pem = readCertificates(path);
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g);
  if (found === null) throw new CommandError(`TAPEDECK_CA: ${path} holds no certificate: it has to be a PEM file.`);
  return found;
}

function readCertificates(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    throw new CommandError(`TAPEDECK_CA: ${path} can't be read.`);
  }
}
