import { protocolRefused } from "./errors.ts";

/** The metadata key that every call but GetVersionInfo needs. */
export const protocolKey = "client-api-protocol";

/**
 * Vagrant's rule: "MIN,CURRENT", once. Both sides know version 1 only. Ignores what follows the two numbers.
 * @throws UpstreamError INVALID_ARGUMENT
 */
export function checkProtocol(values: readonly string[]): void {
  const [value] = values;
  if (value === undefined || values.length > 1 || isRepeated(value)) {
    throw protocolRefused(`required header ${protocolKey} is not set`);
  }
  const [, minimum, current] = /^\s*(\d+)\s*,\s*(\d+)/.exec(value) ?? [];
  if (minimum === undefined || current === undefined) {
    throw protocolRefused(`invalid format for ${protocolKey}: ${JSON.stringify(value)}`);
  }
  if (Number(current) < 1) {
    throw protocolRefused("The client is outdated:\nits API is older than all that the server knows.");
  }
  if (Number(minimum) > 1) {
    throw protocolRefused("The server is outdated:\nthe client's API is newer than what it knows.");
  }
}

/** Node joins a repeated header: "1,1, 1,1". */
function isRepeated(value: string): boolean {
  return /^[^,]*,[^,]*, /.test(value);
}
