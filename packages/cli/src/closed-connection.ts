const closed = new Set(["UND_ERR_SOCKET", "ECONNRESET"]);

/** What a plaintext request to a server with TLS comes to; `code` is that of a failed connection. */
export function closedConnection(base: string, code: string | undefined): string | undefined {
  if (!base.startsWith("http://") || !closed.has(code ?? "")) return undefined;
  return `the server at ${base} closes the connection, as a TLS server does`;
}
