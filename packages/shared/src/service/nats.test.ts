import { expect, test } from "vitest";
import { startTestNats } from "../testing/nats.ts";
import { until } from "../testing/until.ts";
import { silentLogger } from "./logger.ts";
import { connectNats } from "./nats.ts";

test("a connection reconnects by itself", async () => {
  await using server = await startTestNats({ user: "tapedeck", password: "p%w" });
  const { host } = new URL(server.url);
  const nats = await connectNats("test", { url: host, user: "tapedeck", password: "p%w" }, silentLogger);

  await server.kill();
  await server.restart();
  await until(() => nats.rtt(), { message: "the connection to be back" });
  expect(nats.isClosed()).toBe(false);
  await nats.close();
});

test("an unreachable server is reported at once", async () => {
  await using server = await startTestNats();
  await server.stop();
  await expect(connectNats("test", { url: server.url }, silentLogger)).rejects.toThrow(/refused/i);
});

test("wrong credentials are reported at once", async () => {
  await using server = await startTestNats({ user: "tapedeck", password: "right" });
  const { host } = new URL(server.url);
  const settings = { url: host, user: "tapedeck", password: "wrong" };
  await expect(connectNats("test", settings, silentLogger)).rejects.toThrow(/authorization/i);
});

test("a server without TLS is refused where the address asks for it", async () => {
  await using server = await startTestNats();
  const { host } = new URL(server.url);
  await expect(connectNats("test", { url: `tls://${host}` }, silentLogger)).rejects.toThrow(/tls/i);
});
