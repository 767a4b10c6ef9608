/** The address of a listener. */
export type Address = { readonly host: string; readonly port: number };

/** "host:port" or "[::1]:port"; undefined for anything else. Port 0 means any free port. */
export function splitAddress(text: string): Address | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  const host = match?.[1] ?? match?.[2];
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

/** The address as it is dialled: an IPv6 address is in brackets. */
export function addressText({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
