import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { linkLog } from "./log-link.ts";

it("gives no connection while NATS is away, and a live one when it is back", async () => {
  await using nats = await startTestNats();
  await using link = linkLog({ url: nats.url, syncAlways: true }, 1, silentLogger);
  expect(link.nats).toThrow(expect.objectContaining({ code: "not_ready" }));
  await link.opened;
  const { broken } = link.nats();
  expect(broken.aborted).toBe(false);

  await nats.kill();
  await until(() => broken.aborted, { message: "the connection to break" });
  expect(link.nats).toThrow(expect.objectContaining({ code: "not_ready" }));
  await nats.restart();
  const again = await until(() => link.nats(), { message: "NATS to be back" });
  expect(again.broken.aborted).toBe(false);
});

it("tries again where a busy server did not read its user in time", async () => {
  await using nats = await startTestNats();
  await using busy = await busyFront(nats.url);
  await using link = linkLog({ url: busy.url, syncAlways: true }, 1, silentLogger);
  await Promise.race([link.opened, link.failed]);
  expect(busy.connections()).toBeGreaterThan(1);
});

/** A real nats-server behind a port whose first connection is answered as a busy nats-server 2.15 answers. */
async function busyFront(url: string): Promise<AsyncDisposable & { url: string; connections: () => number }> {
  const { hostname, port } = new URL(url);
  let connections = 0;
  const server: Server = createServer((socket) => {
    const isFirst = ++connections === 1;
    const upstream = connect(Number(port), hostname);
    for (const end of [socket, upstream]) end.on("error", () => {});
    socket.on("close", () => upstream.destroy());
    upstream.on("close", () => socket.destroy());
    upstream.pipe(socket, { end: false });
    if (!isFirst) socket.pipe(upstream);
    else socket.once("data", () => socket.end("-ERR 'Authentication Timeout'\r\n"));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      server.close();
    },
  };
}
