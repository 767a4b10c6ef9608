import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "nats";
import { expect, it, vi } from "vitest";
import { silentLogger } from "../service/logger.ts";
import { sourceName } from "../source.ts";
import { testWriter } from "../testing/log-messages.ts";
import { startTestNats } from "../testing/nats.ts";
import { testWorkspace } from "../testing/test-log.ts";
import { until } from "../testing/until.ts";
import { type ConnectedLogs, connectLogs, LogConnector } from "./connect-log.ts";
import { isLogMissing, LogUnusableError } from "./jetstream.ts";
import { endOf, logStart, offsetOf } from "./offset.ts";
import { streamOf } from "./subjects.ts";

function attempts(results: readonly ("ok" | Error)[]) {
  const logger = silentLogger.child({});
  const warn = vi.spyOn(logger, "warn");
  const connections: NatsConnection[] = [];
  const prepare = async (log: ConnectedLogs) => {
    const result = results[connections.length] ?? "ok";
    connections.push(log.nats);
    if (result !== "ok") throw result;
    return log;
  };
  const messages = (text: string) => warn.mock.calls.filter((call) => JSON.stringify(call).includes(text)).length;
  const options = { service: "test", logger, awayMessage: "the log is unavailable", prepare, create: true };
  return { options, connections, messages };
}

const never = new AbortController().signal;

it("retries until it succeeds, reports the failure once, and closes the connections of failed attempts", async () => {
  await using nats = await startTestNats();
  const { options, connections, messages } = attempts([new Error("no answer"), new Error("no answer"), "ok"]);
  const log = await connectLogs({ ...options, settings: { url: nats.url }, signal: never });
  expect(connections.map((connection) => connection.isClosed())).toEqual([true, true, false]);
  expect([messages("the log is unavailable"), messages("the log is available")]).toEqual([1, 1]);
  expect(messages("sync_interval")).toBe(1);
  await log?.[Symbol.asyncDispose]();
  expect(connections[2]?.isClosed()).toBe(true);
});

it("a log that is unusable is not opened again", async () => {
  await using nats = await startTestNats();
  const { options, connections, messages } = attempts([new LogUnusableError("it has lost its end")]);
  const opening = connectLogs({ ...options, settings: { url: nats.url, syncAlways: true }, signal: never });
  await expect(opening).rejects.toThrow("it has lost its end");
  expect(connections.map((connection) => connection.isClosed())).toEqual([true]);
  expect(messages("the log is unavailable")).toBe(0);
});

it("gives up when the signal aborts", async () => {
  await using nats = await startTestNats();
  const stop = new AbortController();
  const { options, connections } = attempts([]);
  const prepare = async (log: ConnectedLogs): Promise<ConnectedLogs> => {
    connections.push(log.nats);
    stop.abort();
    throw new Error("no answer");
  };
  const log = await connectLogs({ ...options, prepare, settings: { url: nats.url }, signal: stop.signal });
  expect(log).toBeUndefined();
  expect(connections).toHaveLength(1);
});

it("an attempt that waits for an answer ends with the signal", async () => {
  await using nats = await startTestNats();
  const stop = new AbortController();
  const { options, connections } = attempts([]);
  const prepare = async (log: ConnectedLogs): Promise<ConnectedLogs> => {
    connections.push(log.nats);
    setImmediate(() => stop.abort());
    const error = await log.nats.closed();
    throw error ?? new Error("the connection was closed");
  };
  expect(await connectLogs({ ...options, prepare, settings: { url: nats.url }, signal: stop.signal })).toBeUndefined();
  expect(connections).toHaveLength(1);
});

it.each([
  ["known to sync", true, 0],
  ["not known to sync, which is reported once", false, 1],
])("a nats-server that is %s, of a log that is opened twice", async (_, syncAlways, warnings) => {
  await using nats = await startTestNats();
  const { options, messages } = attempts([]);
  const connector = new LogConnector({ ...options, settings: { url: nats.url, syncAlways } });
  for (let opened = 0; opened < 2; opened++) {
    await using connected = await connector.open(async (opened) => opened);
    for (const workspace of ["one", "two"]) await connected.logs.of(workspace);
  }
  expect(messages("sync_interval")).toBe(warnings);
});

it("a log that is open reports each message that is no event", async () => {
  await using nats = await startTestNats();
  const { options, messages } = attempts([]);
  await using log = await connectLogs({ ...options, settings: { url: nats.url }, signal: never });
  await log?.logs.of(testWorkspace);
  for (const text of ["no event", "none either"]) {
    await log?.nats.request("tapedeck.v2.acme.alice.shop.skaffold.frames.facts", text, { timeout: 60_000 });
  }
  const over = new AbortController();
  const opened = await log?.logs.of(testWorkspace);
  const following = opened?.reader.follow({ afterOffset: logStart, subjects: [] }, over).next();
  await until(() => messages("is not a batch of events") === 2, { message: "both to be reported" });
  over.abort();
  await following;
});

it("it gives the log of each workspace, and names those that have one", async () => {
  await using nats = await startTestNats();
  const { options } = attempts([]);
  await using log = await connectLogs({ ...options, settings: { url: nats.url }, signal: never });
  if (log === undefined) expect.fail("no log");
  expect(await log.logs.names()).toEqual([]);
  for (const workspace of ["two", "one"]) {
    const source = sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" });
    const { writer } = await log.logs.of(workspace);
    await testWriter(writer, source).append(1, { channel: "tapedeck", kind: "session.started" });
  }
  expect(await log.logs.names()).toEqual(["one", "two"]);
});

it("workspaces have logs of their own, whose positions are in no other one", async () => {
  await using nats = await startTestNats();
  const { options } = attempts([]);
  await using connected = await connectLogs({ ...options, settings: { url: nats.url }, signal: never });
  if (connected === undefined) expect.fail("no connection");
  const names = ["a", "ends", "李", "é".repeat(32), `${"x".repeat(64)}`];
  const logs = await Promise.all(names.map((workspace) => connected.logs.of(workspace)));
  expect(new Set(logs.map(({ epoch }) => epoch)).size).toBe(names.length);
  for (const [index, workspace] of names.entries()) {
    const source = sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" });
    const log = logs[index] as (typeof logs)[number];
    expect(await testWriter(log.writer, source).append(2)).toBe(2);
    expect(await log.reader.bounds()).toMatchObject({ firstOffset: offsetOf(1), lastOffset: endOf(2) });
  }
  expect(await connected.logs.names()).toEqual(names.toSorted());
});

it("a log that was removed is forgotten, and a new one has its place", async () => {
  await using nats = await startTestNats();
  const { options } = attempts([]);
  await using connected = await connectLogs({ ...options, settings: { url: nats.url }, signal: never });
  if (connected === undefined) expect.fail("no connection");
  const first = await connected.logs.of("a");
  await (await jetstreamManager(connected.nats)).streams.delete(streamOf("a"));
  await connected.logs.forget("a", first);
  const second = await connected.logs.of("a");
  expect(second.epoch).not.toBe(first.epoch);
  await connected.logs.forget("a", first);
  expect(await connected.logs.of("a")).toBe(second);
});

it("a service that may not create a log says that there is none", async () => {
  await using nats = await startTestNats();
  const { options } = attempts([]);
  const settings = { url: nats.url };
  await using connected = await connectLogs({ ...options, create: false, settings, signal: never });
  const opening = connected?.logs.of("a") ?? Promise.resolve();
  await expect(opening).rejects.toSatisfy(isLogMissing);
});
