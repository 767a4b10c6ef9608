import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import { expect, it } from "vitest";
import { startTestNats } from "./nats.ts";
import { connectThroughRestarts } from "./nats-connection.ts";
import { until } from "./until.ts";

it("acknowledged messages survive a kill -9 and a restart on the same port", async () => {
  await using server = await startTestNats({ syncAlways: true });
  const nats = await connectThroughRestarts(server.url);
  await (await jetstreamManager(nats)).streams.add({
    name: "T",
    subjects: ["t.>"],
    allow_direct: true,
  });
  await jetstream(nats).publish("t.a", "1");

  await server.kill();
  await server.restart();

  // What is asked while the server is away is never answered.
  const hasty = await jetstreamManager(nats, { timeout: 300, checkAPI: false });
  const state = await until(async () => (await hasty.streams.info("T")).state, { message: "the stream to be back" });
  expect(state.messages).toBe(1);
  await nats.close();
});

it("two servers share nothing", async () => {
  await using one = await startTestNats();
  await using other = await startTestNats();
  expect(one.port).not.toBe(other.port);
});

it("a server with a password refuses clients without it", async () => {
  await using server = await startTestNats({ user: "tapedeck", password: 'a "quoted" $word' });
  const { host } = new URL(server.url);
  await expect(connect({ servers: host, reconnect: false })).rejects.toThrow(/authorization/i);

  const nats = await connect({ servers: host, user: "tapedeck", pass: 'a "quoted" $word' });
  expect(nats.info?.max_payload).toBe(8 * 1024 * 1024);
  await nats.close();
});
