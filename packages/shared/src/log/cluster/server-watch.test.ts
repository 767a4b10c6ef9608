import { expect, test } from "vitest";
import { silentLogger } from "../../service/logger.ts";
import { connectNats, natsHosts, natsServers } from "../../service/nats.ts";
import { lossyProxy } from "../../testing/lossy-proxy.ts";
import { startTestNats } from "../../testing/nats.ts";
import { until } from "../../testing/until.ts";
import { hasQuorum, ServerWatch } from "./server-watch.ts";

test("a server that does not answer is left for another one", async () => {
  await using silent = await startTestNats();
  await using other = await startTestNats();
  await using way = await lossyProxy(silent.port);
  const nats = await connectNats("test", { url: `127.0.0.1:${way.port}` }, silentLogger);
  await using _watch = new ServerWatch(nats, {
    hasOthers: true,
    logger: silentLogger,
    times: { everyMs: 5, timeoutMs: 50 },
  });
  nats.setServers([`127.0.0.1:${way.port}`, `127.0.0.1:${other.port}`]);
  const asked = await nats.rtt();
  expect([asked >= 0, nats.getServer()]).toEqual([true, `127.0.0.1:${way.port}`]);
  way.deaf = true;
  await until(() => nats.getServer() === `127.0.0.1:${other.port}`, { message: "the other server" });
  await until(() => nats.rtt(), { message: "its answers" });
  await nats.close();
});

const seen = (...seconds: readonly number[]) => seconds.map((one) => ({ active: one * 1e9 }));

test.each([
  { followers: seen(), has: true },
  { followers: seen(0.1, 0.2), has: true },
  { followers: seen(0.1, 60), has: true },
  { followers: seen(5, 60), has: false },
  { followers: seen(1, 1, 60, 60), has: true },
  { followers: seen(1, 60, 60, 60), has: false },
])("a leader that last heard of $followers can write: $has", ({ followers, has }) => {
  expect(hasQuorum(followers, 4_000)).toBe(has);
});

test("several servers stand in one setting, and no message has their passwords", () => {
  const url = "nats://a:4222, nats://deck:p%w@b:4222";
  expect(natsServers(url)).toEqual(["nats://a:4222", "nats://deck:p%w@b:4222"]);
  expect(natsHosts(url)).toBe("a:4222, b:4222");
});
