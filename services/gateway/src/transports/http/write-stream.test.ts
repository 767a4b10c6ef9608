import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { until } from "@tapedeck/shared/testing/until";
import fastify, { type FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, it } from "vitest";
import { whileAuthorized } from "../../call-context.ts";
import { defaultLimits } from "../../limits/settings.ts";
import { closedSignal } from "./call-context.ts";
import { writeStream } from "./write-stream.ts";

let app: FastifyInstance;
let sent = 0;
let open = 0;
/** The sockets of the streams that can be revoked, as the server has them. */
const sockets: (Socket | null)[] = [];
const revoked = new AbortController();

/** Says its first chunk, then as many of 100 kB as are taken. */
async function* flood(signal: AbortSignal) {
  open++;
  try {
    yield "first\n";
    while (!signal.aborted) yield "x".repeat(100_000);
  } finally {
    open--;
  }
}

async function* idle(signal: AbortSignal) {
  open++;
  try {
    yield "first\n";
    if (!signal.aborted) await once(signal, "abort");
  } finally {
    open--;
  }
}

async function* broken() {
  yield "first\n";
  throw new Error("in the middle");
}

const written = {
  headers: { "content-type": "text/plain" },
  lastWords: (error: unknown) => `${(error as Error).message}\n`,
  sent: (bytes: number) => {
    sent += bytes;
  },
  unreadBytes: defaultLimits.unreadBytes,
  idle: { ms: 20, text: () => ":\n" },
};

beforeAll(async () => {
  app = fastify({ forceCloseConnections: true });
  for (const [path, chunks] of Object.entries({ flood, idle, broken })) {
    app.get(`/${path}`, async (_request, reply) => {
      const signal = closedSignal(reply);
      await writeStream(reply, signal, { ...written, chunks: chunks(signal) });
      return reply;
    });
  }
  for (const [path, chunks] of Object.entries({ flood, idle })) {
    app.get(`/revocable/${path}`, async (_request, reply) => {
      const signal = whileAuthorized(closedSignal(reply), { revoked: revoked.signal });
      sockets.push(reply.raw.socket);
      await writeStream(reply, signal, { ...written, chunks: chunks(signal) });
      return reply;
    });
  }
  await app.listen({ host: "127.0.0.1", port: 0 });
});
afterAll(() => app.close());

async function read(path: string): Promise<IncomingMessage> {
  const { port } = app.server.address() as AddressInfo;
  const request = get({ host: "127.0.0.1", port, path, agent: false });
  request.on("error", () => {});
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.on("error", () => {}).setEncoding("utf8");
  return response;
}

it("of what a client does not read no more is held than may be, and it can read on", async () => {
  const response = await read("/flood");
  let last = -1;
  let same = 0;
  const isAtRest = () => {
    same = sent > 0 && sent === last ? same + 1 : 0;
    last = sent;
    return same >= 10;
  };
  await until(isAtRest, { message: "it to come to rest" });
  const kernel = 7 << 20; // send and receive buffers of a loopback connection grow to so much
  expect(sent).toBeLessThan(defaultLimits.unreadBytes + kernel);
  let got = 0;
  response.on("data", (text: string) => {
    got += text.length;
  });
  await until(() => got > 3 * (defaultLimits.unreadBytes + kernel), { message: "it to read on" });
  response.destroy();
  await until(() => open === 0, { message: "the source to be let go" });
});

it("an idle stream says something now and then, and is over when the client leaves", async () => {
  const response = await read("/idle");
  let text = "";
  response.on("data", (chunk: string) => {
    text += chunk;
  });
  await until(() => text.startsWith("first\n:\n:\n:\n"), { message: "three comments" });
  response.destroy();
  await until(() => open === 0, { message: "the source to be let go" });
});

it("a caller that loses its access gets an error at the end, and is let go though it does not read", async () => {
  const [idle, stalled] = await Promise.all([read("/revocable/idle"), read("/revocable/flood")]);
  let text = "";
  idle.on("data", (chunk: string) => {
    text += chunk;
  });
  await until(() => text !== "", { message: "a beginning" });
  revoked.abort(new TapedeckError("unauthenticated", "the token has expired"));
  await once(idle, "end");
  expect(text.replaceAll(":\n", "")).toBe("first\nthe token has expired\n");
  await until(() => open === 0, { message: "the sources to be let go" });
  await until(() => sockets.every((socket) => socket?.destroyed), { message: "their connections to be let go" });
  stalled.destroy();
});

it("a stream that fails in the middle ends with its last words", async () => {
  const response = await read("/broken");
  let text = "";
  for await (const chunk of response) text += chunk;
  expect(text).toBe("first\nin the middle\n");
});
