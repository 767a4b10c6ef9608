import { createConnection, type Socket } from "node:net";

/** Receives a whole WebSocket message, as bytes. */
export type OnMessage = (payload: Buffer) => void;

/**
 * A WebSocket client that only counts: it reads frames from the TCP connection and hands over their payloads unparsed,
 * so that a thousand of them in one process cost less than the server that they measure.
 */
export async function openWebSocket(http: string, path: string, onMessage: OnMessage, send?: string): Promise<Socket> {
  const [host = "127.0.0.1", port] = http.split(":");
  const socket = createConnection({ host, port: Number(port), noDelay: true });
  const request = [
    ...[`GET ${path} HTTP/1.1`, `Host: ${http}`, "Connection: Upgrade", "Upgrade: websocket"],
    ...[
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
      "Sec-WebSocket-Protocol: tapedeck.v1.json",
    ],
  ];
  const opened = Promise.withResolvers<void>();
  let rest: Buffer = Buffer.alloc(0);
  let isOpen = false;
  socket.on("error", opened.reject);
  socket.on("close", () => opened.reject(new Error("the socket was closed")));
  socket.on("data", (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    if (!isOpen) {
      const end = rest.indexOf("\r\n\r\n");
      if (end < 0) return;
      const status = rest.toString("latin1", 9, 12);
      if (status !== "101") return opened.reject(new Error(`the server answered ${rest.toString("utf8", 0, 300)}`));
      rest = rest.subarray(end + 4);
      isOpen = true;
      opened.resolve();
    }
    rest = readFrames(socket, rest, onMessage);
  });
  socket.write(`${request.join("\r\n")}\r\n\r\n`);
  await opened.promise;
  if (send !== undefined) socket.write(clientFrame(text, Buffer.from(send)));
  return socket;
}

/** The first message to the gateway. */
export const subscribeMessage = (after: string, filter: Readonly<Record<string, readonly string[]>> = {}): string =>
  JSON.stringify({ type: "subscribe", id: "a", after, filter });

const text = 1;
const ping = 9;
const pong = 10;

/** Returns the bytes of a frame that is not complete yet. */
function readFrames(socket: Socket, bytes: Buffer, onMessage: OnMessage): Buffer {
  let at = 0;
  for (;;) {
    if (bytes.length < at + 2) break;
    const opcode = (bytes[at] ?? 0) & 0x0f;
    let length = (bytes[at + 1] ?? 0) & 0x7f;
    let head = 2;
    if (length === 126) {
      if (bytes.length < at + 4) break;
      length = bytes.readUInt16BE(at + 2);
      head = 4;
    } else if (length === 127) {
      if (bytes.length < at + 10) break;
      length = Number(bytes.readBigUInt64BE(at + 2));
      head = 10;
    }
    const end = at + head + length;
    if (bytes.length < end) break;
    const payload = bytes.subarray(at + head, end);
    if (opcode === ping) socket.write(clientFrame(pong, payload));
    else if (opcode <= 2) onMessage(payload);
    at = end;
  }
  // A slice of a large chunk would keep the whole chunk alive.
  return at === bytes.length ? Buffer.alloc(0) : at === 0 ? bytes : Buffer.from(bytes.subarray(at));
}

/** Clients have to mask; a mask of zeros leaves the bytes as they are. */
function clientFrame(opcode: number, payload: Buffer): Buffer {
  const head =
    payload.length < 126
      ? Buffer.from([0x80 | opcode, 0x80 | payload.length])
      : Buffer.from([0x80 | opcode, 0x80 | 126, payload.length >> 8, payload.length & 0xff]);
  return Buffer.concat([head, Buffer.alloc(4), payload]);
}
