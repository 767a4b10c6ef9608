import { status } from "@grpc/grpc-js";
import { gatewayUrlText } from "../gateway-url.ts";
import type { GrpcTarget } from "../grpc-target.ts";
import { nothingListensAt } from "./nothing-listens.ts";

/** Why Tapedeck does not take what is recorded. */
export type ConnectionFailure = {
  /** A sentence for people, without a full stop. */
  readonly why: string;
  /** It may resolve by itself: the network, a restart. Otherwise a user has to act. */
  readonly mends: boolean;
};

type GrpcError = {
  readonly code?: unknown;
  readonly details?: unknown;
  readonly metadata?: { readonly get: (name: string) => unknown[] };
};

/** Present in a gateway's own errors, and absent in those of gRPC or of something in between. */
const ownWords = "grpc-status-details-bin";

type Target = Pick<GrpcTarget, "address" | "name" | "gateway">;

/** The problem behind an error of a push to that gateway; undefined if it is not worth reporting. */
export function failureOf(error: unknown, target: Target): ConnectionFailure | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, details, metadata } = error as GrpcError;
  if (code === status.CANCELLED) return undefined;
  const text = typeof details === "string" && details !== "" ? details : error.message;
  const isOurs = metadata?.get(ownWords).length === 1;
  if (isOurs) return { why: text, mends: code === status.UNAVAILABLE };
  if (code === status.UNIMPLEMENTED || /HTTP status|content-type/i.test(text)) return stranger(target, text);
  if (code !== status.UNAVAILABLE && typeof code === "number") return { why: text, mends: false };
  return connectionFailure(text, target);
}

function stranger({ name, gateway }: Target, text?: string): ConnectionFailure {
  const detail = text === undefined ? "" : ` (${text})`;
  const advice =
    gateway === undefined
      ? ""
      : `: check the address ${gatewayUrlText(gateway)} and, if its gRPC is not on the port below, TAPEDECK_GRPC_PORT`;
  return { why: `${name} is not the gRPC port of a Tapedeck server${detail}${advice}`, mends: false };
}

/** grpc-js reports these only in words. */
function connectionFailure(text: string, target: Target): ConnectionFailure {
  const { address, name, gateway } = target;
  const last = /Last error: (?:Error(?: \[\w+\])?: )?(.*?)\.? Resolution note:/s.exec(text)?.[1] ?? text;
  const host = address.slice(0, address.lastIndexOf(":"));
  if (/altnames|certificate is not valid for/i.test(last)) {
    const names = /.*(?:altnames|list): (.+)/i.exec(last)?.[1];
    const detail = names === undefined ? "" : ` (${names})`;
    return {
      why: `the certificate at ${address} is for another name${detail}: use a host name that the certificate is for`,
      mends: false,
    };
  }
  if (/certificate has expired/i.test(last)) {
    return { why: `the certificate at ${address} has expired: renew it on the server`, mends: false };
  }
  if (/certificate|issuer|CA cert/i.test(last)) {
    const reason = last.split(";")[0] ?? last;
    const why = `the certificate at ${address} is not trusted (${reason}): set TAPEDECK_CA to the PEM file of its authority`;
    return { why, mends: false };
  }
  if (/application protocol|ALPN/i.test(last)) return stranger(target);
  if (/SSL routines|wrong version number|EPROTO/i.test(last)) {
    return { why: `the server at ${address} does not speak TLS: check the port`, mends: false };
  }
  if (/^Protocol error/.test(last)) return stranger(target);
  // A server that is just dying does that too.
  if (/^Failed to connect|^Connection dropped/.test(last) && name === address) {
    // People give the HTTP address; the port of gRPC is found from that.
    const advice =
      gateway === undefined ? "" : `: if it speaks TLS, use ${gatewayUrlText({ ...gateway, isTls: true })}`;
    return { why: `${address} closes the connection${advice}`, mends: true };
  }
  if (/ECONNREFUSED/.test(last)) return nothingListensAt(address);
  if (/ENOTFOUND|EAI_|Name resolution failed/.test(last)) return { why: `the host ${host} was not found`, mends: true };
  if (/ETIMEDOUT|no answer within|EHOSTUNREACH|ENETUNREACH|keepalive/i.test(last)) {
    return { why: `${address} can't be reached`, mends: true };
  }
  return { why: `the connection to ${address} is lost`, mends: true };
}
