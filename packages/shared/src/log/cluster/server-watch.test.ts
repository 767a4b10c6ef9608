import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { spawnServer } from "@tapedeck/infra/local/server-process";
import type { NatsConnection } from "nats";
import { pino } from "pino";
import { expect, inject, it } from "vitest";
import { silentLogger } from "../../service/logger.ts";
import { connectNats, natsHosts, natsServers } from "../../service/nats.ts";
import { lossyProxy } from "../../testing/lossy-proxy.ts";
import { startTestNats } from "../../testing/nats.ts";
import { ownPort } from "../../testing/own-port.ts";
import { until } from "../../testing/until.ts";
import { endsStream } from "../subjects.ts";
import { hasQuorum } from "./leader-info.ts";
import { ServerWatch } from "./server-watch.ts";

it("a server that answers no ping is left for another one", async () => {
  await using silent = await startTestNats();
  await using other = await startTestNats();
  await using way = await lossyProxy(silent.port);
  const nats = await connectNats("test", { url: `127.0.0.1:${way.port}` }, silentLogger);
  const said: string[] = [];
  await using _watch = watch(nats, { pingMs: 200, timeoutMs: 5_000 }, said);
  nats.setServers([`127.0.0.1:${way.port}`, `127.0.0.1:${other.port}`]);
  const rttMs = await nats.rtt();
  expect([rttMs >= 0, nats.getServer()]).toEqual([true, `127.0.0.1:${way.port}`]);
  // The watch may have asked about the log just now: it pings again when that took too long.
  way.deaf = true;
  await until(() => nats.getServer() === `127.0.0.1:${other.port}`, { message: "the other server" });
  await until(() => nats.rtt(), { message: "its answers" });
  // The library's own pings would leave it, too, half a minute later.
  expect(new Set(said)).toEqual(new Set(["this nats-server does not answer: trying another one"]));
  await nats.close();
});

it("a server that is slow all the time is not left when it becomes slower", async () => {
  await using slow = await startTestNats();
  await using other = await startTestNats();
  await using way = await lossyProxy(slow.port);
  const nats = await connectNats("test", { url: `127.0.0.1:${way.port}` }, silentLogger);
  nats.setServers([`127.0.0.1:${way.port}`, `127.0.0.1:${other.port}`]);
  const said: string[] = [];
  way.lateMs = 1_000;
  await using _watch = watch(nats, { pingMs: 2_000, timeoutMs: 60_000 }, said);
  for (let pings = 0; pings < 3; pings++) await nats.rtt();
  way.lateMs = 2_800;
  // The watch has pinged, too.
  for (let pings = 0; pings < 3; pings++) await nats.rtt();
  expect([said, nats.getServer()]).toEqual([[], `127.0.0.1:${way.port}`]);
  await nats.close();
});

it("a server that answers pings, but nothing about the log, is left for another one", async () => {
  await using cutOff = await startBareNats();
  await using other = await startTestNats();
  const mute = await connectNats("mute", { url: cutOff.url }, silentLogger);
  let requestCount = 0;
  mute.subscribe(`$JS.API.STREAM.INFO.${endsStream}`, { callback: () => void requestCount++ });
  await mute.flush();
  const nats = await connectNats("test", { url: cutOff.url }, silentLogger);
  nats.setServers([cutOff.url, `127.0.0.1:${other.port}`]);
  const said: string[] = [];
  await using _watch = watch(nats, { pingMs: 5_000, timeoutMs: 20 }, said);
  await until(() => nats.getServer() === `127.0.0.1:${other.port}`, { message: "the other server" });
  // The library may dial the same one again before the other.
  expect(new Set(said)).toEqual(new Set(["this nats-server does not reach the log's others: trying another one"]));
  // The client gives up before the server has delivered its second question here, on a machine that is busy.
  await until(() => requestCount >= 2, { message: "both questions about the log" });
  await Promise.all([nats.close(), mute.close()]);
});

it("a server alone is not asked, until it has others", async () => {
  await using alone = await startTestNats();
  const nats = await connectNats("test", { url: alone.url }, silentLogger);
  const on = { checks: 0, pings: 0, connectUrls: ["127.0.0.1:1"] };
  const counted = new Proxy(nats, {
    get(target, key: keyof NatsConnection) {
      if (key === "info") {
        on.checks++;
        return { ...target.info, connect_urls: on.connectUrls };
      }
      if (key === "rtt") on.pings++;
      return target[key]?.bind(target);
    },
  });
  await using _watch = new ServerWatch(counted, { hasOthers: false, logger: silentLogger, times: { everyMs: 1 } });
  for (let pings = 0; pings < 100; pings++) await nats.rtt();
  expect([on.checks, on.pings]).toEqual([1, 0]);
  on.connectUrls = ["127.0.0.1:1", "127.0.0.1:2"];
  await nats.reconnect();
  await until(() => on.pings > 0, { message: "a ping to a server that may be left" });
  await nats.close();
});

/** `said`: the watch's own warnings. */
function watch(nats: NatsConnection, times: { readonly pingMs: number; readonly timeoutMs: number }, said: string[]) {
  const logger = pino({}, { write: (line: string) => void said.push(JSON.parse(line).msg) });
  return new ServerWatch(nats, { hasOthers: true, logger, times: { everyMs: 5, ...times } });
}

/** A nats-server without JetStream: what others answer about streams is theirs. */
async function startBareNats() {
  const folder = await mkdtemp(join(inject("serversFolder"), "bare-nats-"));
  const port = await ownPort();
  const server = await spawnServer({
    command: inject("natsServer"),
    args: ["-a", "127.0.0.1", "-p", String(port), "-P", join(folder, "pid")],
    mark: folder,
    logFile: join(folder, "nats-server.log"),
    stopSignal: "SIGTERM" as const,
  });
  const url = `127.0.0.1:${port}`;
  await until(async () => (await connectNats("start", { url }, silentLogger)).close().then(() => true), {
    message: "the server to accept connections",
  });
  return { url, [Symbol.asyncDispose]: () => server.stop() };
}

const seen = (...seconds: readonly number[]) => seconds.map((one) => ({ active: one * 1e9 }));

it.each([
  { followers: seen(), has: true },
  { followers: seen(0.1, 0.2), has: true },
  { followers: seen(0.1, 60), has: true },
  { followers: seen(5, 60), has: false },
  { followers: seen(1, 1, 60, 60), has: true },
  { followers: seen(1, 60, 60, 60), has: false },
  { followers: [...seen(0, 0.1), { active: 0, offline: true }], has: true },
  { followers: [...seen(0.1), ...seen(0, 0, 0).map((one) => ({ ...one, offline: true }))], has: false },
  { followers: [{ offline: true }, { offline: true }], has: false },
])("a leader that last heard of $followers can write: $has", ({ followers, has }) => {
  expect(hasQuorum(followers, 4_000)).toBe(has);
});

it("several servers stand in one setting, and no message has their passwords", () => {
  const url = "nats://a:4222, nats://deck:p%w@b:4222";
  expect(natsServers(url)).toEqual(["nats://a:4222", "nats://deck:p%w@b:4222"]);
  expect(natsHosts(url)).toBe("a:4222, b:4222");
});
