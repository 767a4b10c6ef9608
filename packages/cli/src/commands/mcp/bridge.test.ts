import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { afterAll, expect, it } from "vitest";
import { McpBridge } from "./bridge.ts";

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());

/** All messages that the bridge writes about a request with the id 7. */
async function answersOf(server: Server | TlsServer, protocol: "http" | "https" = "http"): Promise<unknown[]> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const written: unknown[] = [];
  const base = `${protocol}://127.0.0.1:${port}`;
  const bridge = new McpBridge({ base, headers: {}, write: (message) => written.push(JSON.parse(message)) });
  bridge.take('{"jsonrpc":"2.0","id":7,"method":"tools/list"}');
  await bridge.end();
  server.closeAllConnections();
  server.close();
  return written;
}

const notification = { jsonrpc: "2.0", method: "notifications/message" };
const result = { jsonrpc: "2.0", id: 7, result: {} };
const early = {
  jsonrpc: "2.0",
  id: 7,
  error: { code: -32_000, message: expect.stringContaining("ended the connection before its answer: ask again") },
};

/** A stream of these messages, which ends, or breaks off with its connection. */
const stream =
  (messages: readonly object[], how: "ends" | "breaks off" = "ends"): RequestListener =>
  (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    const text = messages.map((message) => `data: ${JSON.stringify(message)}\n\n`).join("");
    if (how === "ends") response.end(text);
    else response.write(text || ":\n", () => response.socket?.destroy());
  };

it.each<[what: string, serve: RequestListener, messages: unknown[]]>([
  ["has its answer", stream([notification, result]), [notification, result]],
  ["breaks off behind its answer", stream([result], "breaks off"), [result]],
  ["ends without an answer", stream([]), [early]],
  [
    "ends after something else",
    stream([notification, { ...result, id: 8 }]),
    [notification, { ...result, id: 8 }, early],
  ],
  ["breaks off", stream([], "breaks off"), [early]],
])("a request whose stream %s is answered once", async (_what, serve, messages) => {
  expect(await answersOf(createServer(serve))).toEqual(messages);
});

it("a certificate that is not trusted is named as such, with what to do", async () => {
  const { folder } = cleanup.use(await temporaryFolder());
  const { cert, key } = await testCertificate(folder);
  const [answer] = await answersOf(createTlsServer({ cert, key }, stream([result])), "https");
  expect(answer).toMatchObject({
    id: 7,
    error: { message: expect.stringMatching(/certificate .* not trusted.*TAPEDECK_CA/) },
  });
});
