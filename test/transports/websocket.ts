import type { IncomingMessage } from "node:http";
import { WebSocket } from "ws";
import { ConnectionLost, type Message, refused, type Transport } from "./transport.ts";

type ServerMessage = Message & { readonly error?: unknown };

/** The number of messages that may wait here before the socket is paused. */
const maxWaiting = 16;

export const websocket: Transport = {
  name: "WebSocket",
  async *read({ http, token }, request, signal) {
    const socket = new WebSocket(`ws://${http}/api/v1/ws`, "tapedeck.v1.json", {
      ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
    });
    const come: ServerMessage[] = [];
    let over: Error | undefined;
    let wake = () => {};
    const end = (error: Error) => {
      over ??= error;
      wake();
    };
    socket.on("open", () => socket.send(JSON.stringify({ type: "subscribe", id: "a", ...request })));
    socket.on("message", (data) => {
      come.push(JSON.parse(String(data)) as ServerMessage);
      if (come.length >= maxWaiting) socket.pause();
      wake();
    });
    socket.on("unexpected-response", (_request, response) => {
      // While a gateway stops, its WebSocket library refuses handshakes with a text of its own.
      textOf(response)
        .then((text) => refused(JSON.parse(text), response.statusCode))
        .then(end, () => end(new ConnectionLost("refused, and lost")));
    });
    socket.on("error", (cause) => end(new ConnectionLost("the socket broke", { cause })));
    socket.on("close", (code) => end(new ConnectionLost(`closed with ${code}`)));
    const leave = () => {
      end(new ConnectionLost("left"));
      socket.terminate();
    };
    signal.addEventListener("abort", leave);
    if (signal.aborted) leave();
    try {
      for (;;) {
        const message = come.shift();
        if (message !== undefined) {
          if ((message.type as string) === "error") throw refused(message);
          yield message;
        } else if (over !== undefined) {
          throw over;
        } else {
          socket.resume();
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      signal.removeEventListener("abort", leave);
      socket.terminate();
    }
  },
};

async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return text;
}
