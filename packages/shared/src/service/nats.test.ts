import { expect, it } from "vitest";
import { DialTimeout } from "../sync/dial-timeout.ts";
import { lossyProxy } from "../testing/lossy-proxy.ts";
import { startTestNats } from "../testing/nats.ts";
import { until } from "../testing/until.ts";
import { silentLogger } from "./logger.ts";
import { connectNats } from "./nats.ts";

it("a connection reconnects by itself", async () => {
  await using server = await startTestNats({ user: "tapedeck", password: "p%w" });
  const { host } = new URL(server.url);
  const nats = await connectNats("test", { url: host, user: "tapedeck", password: "p%w" }, silentLogger);

  await server.kill();
  await server.restart();
  await until(() => nats.rtt(), { message: "the connection to be back" });
  expect(nats.isClosed()).toBe(false);
  await nats.close();
});

it("servers that answer dials late are reached in the end, at the start as well", async () => {
  await using server = await startTestNats();
  await using first = await lossyProxy(server.port);
  await using second = await lossyProxy(server.port);
  const ways = [first, second];
  const url = ways.map(({ port }) => `127.0.0.1:${port}`).join(",");
  const nats = await connectNats("test", { url }, silentLogger);
  // A dial waits for two answers, and is given up after 2 s.
  for (const way of ways) way.lateMs = 1_500;
  for (const way of ways) way.cut();
  await until(() => nats.rtt(), { message: "the connection to be back" });
  await nats.close();

  const dial = new DialTimeout(2);
  const again = await until(() => connectNats("test", { url }, silentLogger, dial), { message: "a new connection" });
  await again.close();
});

it("an unreachable server is reported at once", async () => {
  await using server = await startTestNats();
  await server.stop();
  await expect(connectNats("test", { url: server.url }, silentLogger)).rejects.toThrow(/refused/i);
});

it("wrong credentials are reported at once", async () => {
  await using server = await startTestNats({ user: "tapedeck", password: "right" });
  const { host } = new URL(server.url);
  const settings = { url: host, user: "tapedeck", password: "wrong" };
  await expect(connectNats("test", settings, silentLogger)).rejects.toThrow(/authorization/i);
});

it("a server without TLS is refused where the address asks for it", async () => {
  await using server = await startTestNats();
  const { host } = new URL(server.url);
  await expect(connectNats("test", { url: `tls://${host}` }, silentLogger)).rejects.toThrow(/tls/i);
});
