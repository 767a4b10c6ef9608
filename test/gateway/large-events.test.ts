import { credentials } from "@grpc/grpc-js";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { EventsRequest, type EventsResponse, TapedeckClient } from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { scenario } from "@tapedeck/query/testing/scenario";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";

// A gRPC client takes messages of 4 MiB by default, and an event may have more. Such a client must come past it.

const mib = 1024 * 1024;
const cleanup = new AsyncDisposableStack();
let on: SeededStack;

beforeAll(async () => {
  on = cleanup.use(await startSeededStack());
  const alice = scenario();
  const session = alice.session("01A1");
  session.started();
  session.configured();
  session.text("small\n");
  session.text("large\n");
  session.text(`${"x".repeat(5 * mib)}\n`);
  session.text("small again\n");
  // The log takes 8 MiB in a message, so the large text comes without the frame that it is from.
  const events = alice.events.map((event) => {
    const text = textOf(event);
    return text === "large\n"
      ? withFrame(event, 5 * mib)
      : text.length > mib
        ? { ...event, original: undefined }
        : event;
  });
  await on.seed(events);
});
afterAll(() => cleanup.disposeAsync());

const textOf = ({ detail }: Event) => (detail?.$case === "text" ? detail.value.text : "");

function withFrame(event: Event, bytes: number): Event {
  const original = {
    type: "proto.LogEntry",
    bytes: Buffer.alloc(bytes, 7),
    size: BigInt(bytes),
    sha256: Buffer.alloc(0),
    head: Buffer.alloc(0),
  };
  return Event.fromPartial({ ...event, original });
}

/** Reads to the end as a client does that keeps its position and resumes after an error. */
async function readAll(request: Partial<EventsRequest>, options: object = {}): Promise<EventsResponse[]> {
  const client = new TapedeckClient(on.stack.grpc, credentials.createInsecure(), options);
  const got: EventsResponse[] = [];
  let [after, errors] = [request.after ?? "start", 0];
  try {
    for (;;) {
      const call = client.events(EventsRequest.fromPartial({ until: "now", ...request, after }));
      try {
        for await (const message of call as AsyncIterable<EventsResponse>) {
          after = message.position;
          got.push(message);
          if (message.body?.$case === "complete") return got;
        }
      } catch (error) {
        errors += 1;
        if (errors === 3) throw error;
      }
    }
  } finally {
    client.close();
  }
}

function eventsIn(messages: readonly EventsResponse[]) {
  return messages.flatMap(({ body }) => (body?.$case === "event" ? [body.value] : []));
}

it("a client with default limits gets every event, and sees what was left out of the large ones", async () => {
  const events = eventsIn(await readAll({ original: true }));
  expect(events.map(({ event }) => event?.ordinal)).toEqual(
    eventsIn(await readAll({}, unlimited)).map(({ event }) => event?.ordinal),
  );
  const [frame, text] = events.filter(({ omitted }) => omitted.length > 0);
  expect(frame).toMatchObject({
    omitted: ["original"],
    event: {
      detail: { value: { text: "large\n" } },
      original: { type: "proto.LogEntry", size: BigInt(5 * mib), bytes: Buffer.alloc(0) },
    },
  });
  expect(text?.omitted).toContain("detail");
  expect(text?.event?.detail).toBeUndefined();
  expect(events.filter(({ omitted }) => omitted.length > 0)).toHaveLength(2);
});

const unlimited = { "grpc.max_receive_message_length": -1 };

it("a client that says what it accepts gets everything", async () => {
  const events = eventsIn(await readAll({ original: true, max_message_bytes: 16 * mib }, unlimited));
  expect(events.flatMap(({ omitted }) => omitted)).toEqual([]);
  expect(Math.max(...events.map(({ event }) => event?.original?.bytes.length ?? 0))).toBeGreaterThanOrEqual(5 * mib);
});

it("a state that does not fit is refused with a way to get it", async () => {
  const state = readAll({
    after: "now",
    state: true,
    filter: { sources: ["alice/shop"] } as never,
    max_message_bytes: 10,
  });
  await expect(state).rejects.toMatchObject({ code: 8, details: expect.stringContaining("max_message_bytes") });
});
