import { type Metadata, status } from "@grpc/grpc-js";
import { Refusal } from "./status.ts";

/**
 * The server's check of a call's metadata: every method but GetVersionInfo needs "client-api-protocol" with
 * "MIN,CURRENT", once, and both sides know version 1 only. Anything after the two numbers is ignored.
 */
export function checkProtocol(metadata: Metadata): void {
  const given = metadata.get("client-api-protocol").map(String);
  const [value] = given;
  if (value === undefined || given.length > 1 || isRepeated(value)) {
    throw refused("required header client-api-protocol is not set");
  }
  const [, minimum, current] = /^\s*(\d+)\s*,\s*(\d+)/.exec(value) ?? [];
  if (minimum === undefined || current === undefined) {
    throw refused(`invalid format for client-api-protocol: ${JSON.stringify(value)}`);
  }
  if (Number(current) < 1) throw refused("The client is outdated:\nits API is older than all that the server knows.");
  if (Number(minimum) > 1) throw refused("The server is outdated:\nthe client's API is newer than what it knows.");
}

/** Node joins a header that comes twice: "1,1, 1,1". */
function isRepeated(value: string): boolean {
  return /^[^,]*,[^,]*, /.test(value);
}

function refused(details: string): Refusal {
  return new Refusal(status.INVALID_ARGUMENT, details);
}
