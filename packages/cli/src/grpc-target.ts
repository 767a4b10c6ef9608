import { isIP } from "node:net";
import type { ChannelOptions } from "@grpc/grpc-js";
import { isLoopback } from "@tapedeck/shared/service/loopback";
import { assertPrivate, bearerOf, trustedCertificates } from "./gateway-address.ts";
import type { GatewayUrl } from "./gateway-url.ts";
import { chosenTapedeck } from "./targets/chosen-tapedeck.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** A gateway's gRPC address, and what every call carries, without gRPC: `grpcEndpoint` makes an endpoint of it. */
export type GrpcTarget = {
  /** "host:port", as grpc-js takes it. */
  readonly address: string;
  readonly isTls: boolean;
  /** What TLS trusts, in PEM; undefined: what Node.js does. */
  readonly certificates?: readonly string[] | undefined;
  /** Contains `authorization` if there is a token. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Options of a client. Addresses on this machine are never reached through a proxy. */
  readonly options: ChannelOptions;
  /** The same for the same gateway however it was written: "127.0.0.1:7051", "https://tapedeck.example:7051". */
  readonly name: string;
  /** The HTTP address of the same gateway, as its user writes it; undefined where gRPC is reached past the gateway. */
  readonly gateway?: GatewayUrl;
};

/**
 * The gRPC address of a Tapedeck: `http(s)://host[:port]`, as in `httpBase`; by default the chosen Tapedeck. Same host,
 * on the port of TAPEDECK_GRPC_PORT or its context, else the one below (7052: 7051). TLS trusts the PEM file in
 * TAPEDECK_CA or of the context, else what Node.js and this system trust.
 * @throws CommandError when it is no address, is plaintext that leaves this machine (see `assertPrivate`), or the
 * certificates or the token can't be used
 */
export function grpcTarget(url?: string, env: Env = process.env): GrpcTarget {
  const chosen = chosenTapedeck(url, env);
  const { isTls, host } = chosen.gateway;
  const token = bearerOf(chosen);
  assertPrivate({ ...chosen.gateway, port: chosen.grpcPort }, env, chosen, token);
  const metadata: Record<string, string> = token === undefined ? {} : { authorization: token };
  const address = `${host}:${chosen.grpcPort}`;
  const options = isLoopback(host) ? { "grpc.enable_http_proxy": 0 } : {};
  const common = { address, isTls, metadata, options, gateway: chosen.gateway };
  if (!isTls) return { ...common, name: address };
  // grpc-js names the address to the server, of which Node.js would warn on the user's terminal.
  if (isIP(host.replace(/[[\]]/g, "")) > 0) process.noDeprecation = true;
  return { ...common, certificates: trustedCertificates(chosen), name: `https://${address}` };
}
