import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

/** What a client said, and on which connection, counted from 0. */
export type ReceivedMessage = { readonly type: string; readonly id?: string; readonly on: number } & Readonly<
  Record<string, unknown>
>;

/** A gateway that says what a test asks it to, also what a real one hardly ever does. */
export type FakeGateway = AsyncDisposable & {
  readonly url: string;
  readonly said: readonly ReceivedMessage[];
  /** All connections there were. */
  readonly sockets: readonly WebSocket[];
  /** The protocols of the clients that are let in. */
  readonly protocols: readonly string[];
};

export type Script = {
  /** Called with each message; not with pings, unless it wants them. */
  readonly hears: (message: ReceivedMessage, send: (message: object) => void, socket: WebSocket) => void;
  /** True: pings are answered. */
  readonly answersPings?: boolean;
  /** Called with each ping, before it is answered. */
  readonly pinged?: () => void;
  /** Status and body with which a connection is refused, by WebSocket and not; undefined: let in. */
  readonly refuses?: () => { readonly status: number; readonly body: object } | undefined;
};

export async function fakeGateway({
  hears,
  answersPings = true,
  pinged = () => {},
  refuses = () => undefined,
}: Script): Promise<FakeGateway> {
  const said: ReceivedMessage[] = [];
  const sockets: WebSocket[] = [];
  const protocols: string[] = [];
  const webSockets = new WebSocketServer({ noServer: true, handleProtocols: () => "tapedeck.v1.json" });
  const server = createServer((_request, response) => {
    const { status, body } = refuses() ?? {
      status: 426,
      body: { error: { code: "invalid_argument", message: "WebSocket" } },
    };
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  server.on("upgrade", (request, tcp, head) => {
    const refusal = refuses();
    if (refusal !== undefined) {
      tcp.end(`HTTP/1.1 ${refusal.status} No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    protocols.push(String(request.headers["sec-websocket-protocol"]));
    webSockets.handleUpgrade(request, tcp, head, (socket) => {
      const on = sockets.push(socket) - 1;
      const send = (message: object) => socket.send(JSON.stringify(message));
      socket.on("message", (data) => {
        const message = { ...JSON.parse(String(data)), on } as ReceivedMessage;
        said.push(message);
        if (message.type !== "ping") return hears(message, send, socket);
        pinged();
        if (answersPings) send({ type: "pong" });
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    said,
    sockets,
    protocols,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.terminate();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
