import { getEventListeners } from "node:events";
import { ControlCall, ControlReply, StreamMessage } from "@tapedeck/proto/tapedeck/v1/recorder";
import { controlSubject, streamSubject } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect, errors, type NatsConnection } from "nats";
import { afterAll, beforeAll, expect, it } from "vitest";
import { controlClient } from "./control-client.ts";
import { streamClient } from "./stream-client.ts";

const cleanup = new AsyncDisposableStack();
const source = sourceName({ workspace: "default", developer: "alice", project: "shop", upstream: "vagrant" });
let gateway: NatsConnection;
let ingest: NatsConnection;
beforeAll(async () => {
  const { url } = cleanup.use(await startTestNats());
  const connected = async () => cleanup.adopt(await connect({ servers: url }), (one) => one.close());
  [gateway, ingest] = [await connected(), await connected()];
});
afterAll(() => cleanup.disposeAsync());

type Step = NonNullable<StreamMessage["step"]>;
const opened: ControlReply = { code: 0, message: "", response: Buffer.alloc(0), reason: "" };

/** A client's stream, and the ingest's side of it. */
async function stream(requests: AsyncIterable<Uint8Array>, reply: (client: AbortController) => ControlReply) {
  const client = new AbortController();
  const broken = new AbortController().signal;
  const steps: Step[] = [];
  const ids: string[] = [];
  const answering = ingest.subscribe(controlSubject(source), {
    max: 1,
    callback: (_, message) => {
      const { stream: id = "" } = ControlCall.decode(message.data);
      ids.push(id);
      ingest.subscribe(streamSubject("upstream", id), {
        callback: (__, { data }) => {
          const { step } = StreamMessage.decode(data);
          if (step === undefined) return;
          steps.push(step);
          if (step.$case !== "data") return;
          const taken = { $case: "taken" as const, value: BigInt(step.value.length) };
          ingest.publish(streamSubject("client", id), StreamMessage.encode({ stream: id, step: taken }).finish());
        },
      });
      message.respond(ControlReply.encode(reply(client)).finish());
    },
  });
  await ingest.flush();
  const nats = () => ({ connection: gateway, broken });
  const { signal } = client;
  const open = streamClient(nats, controlClient(nats)).open({ source, method: "/M", who: "me", requests, signal });
  const [result] = await Promise.allSettled([open]);
  answering.unsubscribe();
  /** Resolves when nobody on the gateway's side takes steps of the stream, or waits for its connection to break. */
  const closed = async () => {
    const ask = async () => await ingest.request(streamSubject("client", ids[0] ?? ""), "", { timeout: 200 });
    const isNobody = (error: unknown) => error instanceof errors.RequestError && error.isNoResponders();
    await until(() => ask().then(() => false, isNobody), { message: "the subscription to be over" });
    expect(getEventListeners(broken, "abort")).toEqual([]);
  };
  const messages = () => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  };
  return { client, steps, closed, messages, status: result.status };
}

async function* nothing() {}

it.each([
  ["while it is opened", (client: AbortController) => client.abort()],
  ["once it is open", () => {}],
])("a client that leaves %s, before anybody reads, ends the stream", async (_, meanwhile) => {
  const { client, steps, closed } = await stream(nothing(), (leaving) => {
    meanwhile(leaving);
    return opened;
  });
  client.abort();
  await closed();
  await until(() => steps.some(({ $case }) => $case === "end"), { message: "the upstream to hear of it" });
});

it("a stream that could not be opened is ended, in case it is open on the other side", async () => {
  const { status, steps, closed } = await stream(nothing(), () => ({ ...opened, reason: "upstream_away" }));
  expect(status).toBe("rejected");
  await closed();
  await until(() => steps.some(({ $case }) => $case === "end"), { message: "the upstream to hear of it" });
});

it("a message too large for NATS ends the stream on both sides, with the reason", async () => {
  const maxBytes = gateway.info?.max_payload ?? 0;
  async function* requests() {
    yield Buffer.from("first");
    yield Buffer.alloc(maxBytes);
    yield Buffer.from("never");
  }
  const { messages, steps, closed } = await stream(requests(), () => opened);
  const refusal = { name: "UpstreamError", code: 8, message: expect.stringMatching(`takes ${maxBytes} .max_payload.`) };
  await expect(messages().next()).rejects.toMatchObject(refusal);
  await closed();
  await until(() => steps.length >= 2, { message: "the upstream to hear of it" });
  const { code, message } = refusal;
  expect(steps[0]).toEqual({ $case: "data", value: Buffer.from("first") });
  expect(steps[1]).toMatchObject({ $case: "end", value: { code, message } });
  expect(steps.slice(2).filter(({ $case }) => $case !== "end")).toEqual([]);
});
