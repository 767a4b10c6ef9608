import { createHash } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, it } from "vitest";
import { WebSocket } from "ws";
import type { SubscriptionMessage } from "../../apis/tapedeck/messages.ts";
import { framesOf, textFrames } from "./frames.ts";

const messageOf = (length: number): SubscriptionMessage => ({
  type: "event",
  position: "p",
  protoUpTo: () => new Uint8Array(),
  json: `{"type":"event","x":"${"x".repeat(length)}"}`,
});

/** What a client of another make reads from these bytes. */
async function read(bytes: Buffer, count: number): Promise<readonly string[]> {
  const server = createServer((socket) => {
    socket.once("data", (head) => {
      const key = /sec-websocket-key: (\S+)/i.exec(String(head))?.[1] ?? "";
      const digest = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
      socket.write(
        `HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${digest}\r\n\r\n`,
      );
      socket.write(bytes);
    });
    socket.on("error", () => {});
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const got: string[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  client.on("error", reject).on("message", (data, isBinary) => {
    expect(isBinary).toBe(false);
    if (got.push(String(data)) === count) resolve();
  });
  await promise;
  client.terminate();
  server.close();
  return got;
}

it("frames of every length, and of text that is not ASCII, are read as they were written", async () => {
  const texts = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000].map((length) => "x".repeat(length));
  texts.push("ü", "日本語".repeat(50), "😀".repeat(20_000), "last");
  expect(await read(textFrames(texts), texts.length)).toEqual(texts);
});

it("each message gets the label, and as many as fit go together", async () => {
  const messages = [10, 10, 200, 10, 10].map(messageOf);
  const frames = framesOf(messages, ',"id":"a",', 100);
  expect(frames.length).toBe(3);
  const texts = await read(Buffer.concat(frames), messages.length);
  expect(texts).toEqual(messages.map(({ json }) => json.replace(",", ',"id":"a",')));
});

it("those who get the same messages under the same label share the frames, and nobody else does", () => {
  const messages = [messageOf(10), messageOf(20)];
  const frames = framesOf(messages, ',"id":"a",', 1_000);
  expect(framesOf([...messages], ',"id":"a",', 1_000)[0]).toBe(frames[0]);
  expect(String(framesOf(messages, ',"id":"b",', 1_000)[0])).toContain('"id":"b"');
  expect(framesOf(messages, ',"id":"a",', 10).length).toBe(2);
  expect(framesOf(messages.slice(1), ',"id":"a",', 1_000)[0]?.length).toBeLessThan(frames[0]?.length ?? 0);
});
