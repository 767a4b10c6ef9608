import { expect, test } from "vitest";
import { startTestNats } from "../testing/nats.ts";
import { until } from "../testing/until.ts";
import { silentLogger } from "./logger.ts";
import { connectNats } from "./nats.ts";

test("a connection waits for its server, and comes back by itself", async () => {
  await using server = await startTestNats({ user: "tapedeck", password: "p%w" });
  await server.stop();
  const { host } = new URL(server.url);
  const connecting = connectNats("test", { url: host, user: "tapedeck", password: "p%w" }, silentLogger);
  await server.restart();
  const nats = await connecting;
  await nats.flush();

  await server.kill();
  await server.restart();
  await until(() => nats.rtt(), { message: "the connection to be back" });
  expect(nats.isClosed()).toBe(false);
  await nats.close();
});

test("wrong credentials are told at once", async () => {
  await using server = await startTestNats({ user: "tapedeck", password: "right" });
  const { host } = new URL(server.url);
  const settings = { url: host, user: "tapedeck", password: "wrong" };
  await expect(connectNats("test", settings, silentLogger)).rejects.toThrow(/authorization/i);
});
