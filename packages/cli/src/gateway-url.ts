import { CommandError } from "./command-error.ts";

/** Default HTTP port of a gateway. */
const defaultPort = 7052;

/** A gateway's address as people write it. */
export type GatewayUrl = {
  readonly isTls: boolean;
  /** In brackets for IPv6. */
  readonly host: string;
  readonly port: number;
  readonly path: string;
};

/** "https://tapedeck.example:7052", without a slash at its end. */
export function gatewayUrlText({ isTls, host, port, path }: GatewayUrl): string {
  return `${isTls ? "https" : "http"}://${host}:${port}${path}`;
}

/**
 * `http://host[:port][/path]` or `host:port` (plaintext), `https://host[:port][/path]` (TLS).
 * Read by hand: `new URL` drops :443 of https and :80 of http, which are not our defaults.
 * @throws CommandError when it is none of these
 */
export function parseGatewayUrl(text: string): GatewayUrl {
  const [, scheme = "", host = "", port, path = ""] =
    /^(?:(https?):\/\/)?(\[[\da-f:.]+\]|[^\s:/?#@[\]]+)(?::(\d{1,5}))?(\/[^\s?#]*)?$/i.exec(text.trim()) ?? [];
  const number = port === undefined ? defaultPort : Number(port);
  const isWhole = host !== "" && (scheme !== "" || port !== undefined) && number >= 1 && number <= 65_535;
  const folder = path.replace(/\/+$/, "");
  if (!isWhole) {
    throw new CommandError(
      `${text} is not an address: use https://tapedeck.example, or http://127.0.0.1:${defaultPort} for this machine.`,
    );
  }
  return { isTls: scheme.toLowerCase() === "https", host: host.toLowerCase(), port: number, path: folder };
}
