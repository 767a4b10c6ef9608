import { type PushResponse, StreamMessage } from "@tapedeck/proto/tapedeck/v1/recorder";
import { streamSubject } from "@tapedeck/shared/log/subjects";
import { relayedStreams } from "@tapedeck/shared/relayed-streams";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { expect, it } from "vitest";
import { PushResponses } from "../push-responses.ts";
import { StreamRelays } from "./relay-streams.ts";

type Step = NonNullable<StreamMessage["step"]>;

it("a message too large for NATS ends the stream on both sides, with the reason, and frees its place", async () => {
  await using server = await startTestNats();
  await using cleanup = new AsyncDisposableStack();
  const nats = cleanup.adopt(await connect({ servers: server.url }), (one) => one.close());
  const over = new AbortController();
  cleanup.defer(() => over.abort());
  const responses = new PushResponses(0n);
  const toTap: PushResponse["body"][] = [];
  const tap = (async () => {
    for await (const { body } of responses.stream()) toTap.push(body);
  })();
  const relays = new StreamRelays({ nats, responses, signal: over.signal });
  const toClient: Step[] = [];
  nats.subscribe(streamSubject("client", "S1"), {
    callback: (_, { data }) => {
      const { step } = StreamMessage.decode(data);
      if (step !== undefined) toClient.push(step);
    },
  });
  expect(relays.open("S1", "/M")).toMatchObject({ code: 0 });
  for (let n = 2; n <= relayedStreams.maxOpen; n++) relays.open(`S${n}`, "/M");
  expect(relays.open("more", "/M")).toMatchObject({ reason: "limit_exceeded" });

  const maxBytes = nats.info?.max_payload ?? 0;
  for (const value of [Buffer.from("first"), Buffer.alloc(maxBytes), Buffer.from("never")]) {
    responses.streamed({ stream: "S1", step: { $case: "data", value } });
  }
  const message = expect.stringMatching(`takes ${maxBytes} .max_payload.`);
  const end = { $case: "end", value: { code: 8, message } };
  await until(() => toClient.some(({ $case }) => $case === "end"), { message: "the client to hear of it" });
  expect(toClient).toMatchObject([{ $case: "data", value: Buffer.from("first") }, end]);
  const ends = () => toTap.filter((body) => body?.$case === "stream" && body.value.step?.$case === "end");
  await until(() => ends().length > 0, { message: "the tap to hear of it" });
  expect(ends()).toMatchObject([{ value: { stream: "S1", step: end } }]);
  expect(relays.open("more", "/M")).toMatchObject({ code: 0 });
  responses.end();
  await tap;
});

it("refuses a stream once recording ends, and ends one that the tap has left at once", async () => {
  await using server = await startTestNats();
  await using cleanup = new AsyncDisposableStack();
  const nats = cleanup.adopt(await connect({ servers: server.url }), (one) => one.close());
  const over = new AbortController();
  cleanup.defer(() => over.abort());
  const responses = new PushResponses(0n);
  const relays = new StreamRelays({ nats, responses, signal: over.signal });
  const ends: string[] = [];
  nats.subscribe(streamSubject("client", "*"), {
    callback: (_, { data }) => {
      const { stream, step } = StreamMessage.decode(data);
      if (step?.$case === "end") ends.push(`${stream}: ${step.value.message}`);
    },
  });
  responses.end();
  expect(relays.open("S1", "/M")).toMatchObject({ code: 0 });
  await until(() => ends.length > 0, { message: "the client to hear of it" });
  expect(ends).toEqual(["S1: the tap disconnected"]);
  over.abort();
  expect(relays.open("S2", "/M")).toMatchObject({ code: 14, reason: "upstream_away" });
});
