/** "*" stands for a port (":*", which includes no port) and, unless the scheme is http or https, for a host. */
const form = /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/(?<host>\*|\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?<port>:(?:\d{1,5}|\*))?$/;

/** Schemes in which anyone can have a host. */
const webSchemes: ReadonlySet<string> = new Set(["http", "https"]);

/** The problem of an entry of `gateway.origins`; undefined when it has none. */
export function originError(pattern: string): string | undefined {
  if (pattern === "null") return undefined;
  const { scheme = "", host } = form.exec(pattern)?.groups ?? {};
  if (host === undefined) {
    return `"${pattern}" is not an origin: expected scheme://host or scheme://host:port without a path, such as https://dash.example.com, http://localhost:* or vscode-webview://*`;
  }
  if (host === "*" && webSchemes.has(scheme)) return `"${pattern}" would let every page of the web in: name its host`;
  return undefined;
}

/** Whether an entry of `gateway.origins` names the origin of a page, as its browser writes it. */
export function isOriginNamed(pattern: string, origin: string): boolean {
  if (pattern === origin) return true;
  if (!pattern.includes("*")) return false;
  const expression = pattern
    .replace(/[.+[\]]/g, "\\$&")
    .replace(/:\*$/, "(:\\d+)?")
    .replace("//*", "//[a-z0-9._-]+");
  return new RegExp(`^${expression}$`).test(origin);
}
