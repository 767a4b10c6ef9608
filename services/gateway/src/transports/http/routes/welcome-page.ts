/** A plain page for people who open the gateway in a browser: what is served where. */
export function welcomePage(http: string, grpc: string, { needsToken }: { readonly needsToken: boolean }): string {
  const isTls = http.startsWith("https:");
  const header = needsToken ? ` -H "authorization: Bearer $TAPEDECK_TOKEN"` : "";
  const link = (path: string, what: string) => `<li><a href="${escaped(path)}">${escaped(path)}</a> – ${what}</li>`;
  const example = (command: string, what: string) => `<li><code>${escaped(command)}</code> – ${what}</li>`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Tapedeck</title>
<style>body { font: 16px/1.5 system-ui, sans-serif; max-width: 46em; margin: 3em auto; padding: 0 1em }</style>
<h1>Tapedeck</h1>
<p>Records what development tools do, and plays it back. gRPC is on <code>${escaped(grpc)}</code>, HTTP and WebSocket here.</p>${
    needsToken
      ? `
<p>What was recorded needs a token: <code>authorization: Bearer …</code></p>`
      : ""
  }
<h2>What was recorded</h2>
<ul>
${link("/api/v1/sources", "who is recorded, and whether it runs")}
${link("/api/v1/sessions", "each process that was recorded")}
${link("/api/v1/operations?limit=20", "the newest builds, tests, deploys, loops, pods …")}
${link("/api/v1/stats/builds?group=artifact", "how long builds take, and how many fail")}
${link("/api/v1/events?last=20", "the newest events")}
${link("/api/v1/state", "state of the source; with several, ?source=developer/project")}
${link("/api/docs", "all that can be asked over HTTP, to read and to try (OpenAPI: /api/docs/openapi.json)")}
</ul>
<h2>As it happens</h2>
<ul>
${example(`curl${header} -N ${http}/api/v1/stream`, "server-sent events")}
${example(`curl${header} -N ${http}/v1/events`, "Skaffold's own API, with several sources ?source=developer/project; its clients work unchanged")}
${example(`grpcurl${isTls ? "" : " -plaintext"}${header} ${grpc} v1alpha.PublicAPI/ListenEvents`, "rkt's own API, with events; with several hosts -H 'tapedeck-source: host/host'")}
${example(`${http.replace(/^http/, "ws")}/api/v1/ws`, "WebSocket, subprotocol tapedeck.v1.json")}
</ul>
<h2>Health</h2>
<ul>
${link("/readyz", "is everything there?")}
${link("/metrics", "for Prometheus")}
</ul>
</html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
