import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "nats";
import { afterAll, beforeAll } from "vitest";
import { startTestNats, type TestNats } from "../testing/nats.ts";
import { openLog } from "./jetstream.ts";
import { logContract } from "./log.contract.ts";
import { streamName } from "./subjects.ts";

let server: TestNats;
let nc: NatsConnection;

beforeAll(async () => {
  server = await startTestNats();
  nc = await connect({ servers: server.url });
});

afterAll(async () => {
  await nc.close();
  await server[Symbol.asyncDispose]();
});

logContract("JetStream", async () => {
  await (await import("@nats-io/jetstream"))
    .jetstreamManager(nc)
    .then((jsm) => jsm.streams.delete("TAPEDECK").catch(() => {}));
  return openLog(nc, { syncKnown: true });
});
