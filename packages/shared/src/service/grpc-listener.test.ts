import { once } from "node:events";
import { mkdtemp } from "node:fs/promises";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { afterEach, describe, expect, inject, it } from "vitest";
import { type TestCertificate, testCertificate } from "../testing/certificates.ts";
import { until } from "../testing/until.ts";
import { listenGrpc } from "./grpc-listener.ts";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

const host = "127.0.0.1";
const plaintext = () => ServerCredentials.createInsecure();
const tls = ({ cert, key }: TestCertificate) =>
  ServerCredentials.createSsl(null, [{ cert_chain: Buffer.from(cert), private_key: Buffer.from(key) }]);

/** A server without services: it refuses every call, which is an answer. */
async function listen(limits: { connections?: number; arrivalMs?: number } = {}, credentials = plaintext()) {
  const defaults = { connections: 100, arrivalMs: 250 };
  return stack.use(await listenGrpc(new Server(), { host, port: 0, credentials }, { ...defaults, ...limits }));
}

function watched<Connection extends Socket | ClientHttp2Session>(connection: Connection) {
  stack.defer(() => void connection.destroy());
  const reported = { connection, over: false };
  connection.on("error", () => {});
  connection.on("close", () => {
    reported.over = true;
  });
  return reported;
}

const silent = (port: number) => watched(connect(port, host).resume());
const session = (port: number) => watched(connectHttp2(`http://${host}:${port}`));
const isOver = async (reported: { readonly over: boolean }) => {
  await until(() => reported.over, { message: "the connection to be closed" });
};

async function call(client: ClientHttp2Session): Promise<unknown> {
  const stream = client.request({
    ":method": "POST",
    ":path": "/test.None/Call",
    "content-type": "application/grpc",
    te: "trailers",
  });
  let status: unknown = "no answer";
  stream.on("error", () => {});
  stream.once("response", (headers) => {
    status = headers["grpc-status"];
  });
  await once(stream.resume().end(), "close");
  return status;
}

const unimplemented = "12";

/** A connection that has made a request in time, which takes more than one on a machine that is very slow. */
const isAccepted = (connect: () => ReturnType<typeof session>) =>
  until(
    async () => {
      const asking = connect();
      return (await call(asking.connection)) === unimplemented && asking;
    },
    { message: "a request in time" },
  );

describe("a connection is closed", () => {
  it("that sends nothing", async () => {
    const { port } = await listen();
    await isOver(silent(port));
  });

  it("that speaks HTTP/2 and makes no request, although it answers pings", async () => {
    const { port } = await listen();
    const hasPingedInTime = async () => {
      const reported = session(port);
      let pongs = 0;
      reported.connection.once("remoteSettings", () =>
        reported.connection.ping((error) => {
          if (error === null) pongs++;
        }),
      );
      await isOver(reported);
      return pongs > 0;
    };
    await until(hasPingedInTime, { message: "one that was answered before it was closed" });
  });

  it("whose TLS handshake does not finish", async () => {
    const certificate = await testCertificate(await mkdtemp(join(inject("serversFolder"), "door-")));
    const { port } = await listen({}, tls(certificate));
    const half = silent(port);
    half.connection.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00]));
    await Promise.all([isOver(silent(port)), isOver(half)]);
  });

  it("that finishes its TLS handshake and makes no request", async () => {
    const certificate = await testCertificate(await mkdtemp(join(inject("serversFolder"), "door-")));
    const { port } = await listen({}, tls(certificate));
    const hasShakenHandsInTime = async () => {
      const quiet = watched(connectTls({ port, host, rejectUnauthorized: false, ALPNProtocols: ["h2"] }).resume());
      let isSecure = false;
      quiet.connection.once("secureConnect", () => {
        isSecure = true;
      });
      await isOver(quiet);
      return isSecure;
    };
    await until(hasShakenHandsInTime, { message: "one that had finished its handshake before it was closed" });

    const asking = await isAccepted(() =>
      watched(connectHttp2(`https://${host}:${port}`, { rejectUnauthorized: false })),
    );
    await isOver(silent(port));
    expect(asking.over).toBe(false);
  });
});

it("a connection that has made a request stays open, however long it is idle", async () => {
  const { port } = await listen();
  const asking = await isAccepted(() => session(port));
  // Later ones, so the time is over for this one, too.
  await isOver(silent(port));
  await isOver(silent(port));
  expect(asking.over).toBe(false);
  expect(await call(asking.connection)).toBe(unimplemented);
});

it("a connection over the limit is closed at once, and an ended one makes room", async () => {
  const { port } = await listen({ connections: 2, arrivalMs: 600_000 });
  const [first, second] = [session(port), session(port)];
  expect([await call(first.connection), await call(second.connection)]).toEqual([unimplemented, unimplemented]);
  await isOver(silent(port));
  first.connection.destroy();
  await until(async () => (await call(session(port).connection)) === unimplemented, { message: "a place" });
  expect(second.over).toBe(false);
});

it("disposing of the listener closes every connection and frees the port", async () => {
  const limits = { connections: 100, arrivalMs: 600_000 };
  const listener = await listenGrpc(new Server(), { host, port: 0, credentials: plaintext() }, limits);
  const { port } = listener;
  const [asking, quiet] = [session(port), silent(port)];
  expect(await call(asking.connection)).toBe(unimplemented);
  await expect(listenGrpc(new Server(), { host, port, credentials: plaintext() }, limits)).rejects.toThrow(
    `port ${port} on ${host} is taken: stop what listens there, or choose another port`,
  );
  await listener[Symbol.asyncDispose]();
  await Promise.all([isOver(asking), isOver(quiet)]);
  await using again = await listenGrpc(new Server(), { host: "localhost", port, credentials: plaintext() }, limits);
  expect(again.port).toBe(port);
});
