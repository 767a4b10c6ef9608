import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Hello, Imported, type Item, type PushRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { ended, type ForeignSession, foreignSession, frameOf } from "@tapedeck/shared/testing/foreign-session";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { connect } from "nats";
import { ulid } from "ulid";
import { expect, it } from "vitest";
import { normalizers } from "../../normalize/normalizers.ts";
import { storesOn } from "../../testing/opened-store.ts";
import { Recorder } from "../recorder.ts";

/**
 * The requests for one new session, whatever was recorded before it: two leases, whether the workspace is being removed, the
 * log's end, what is new in it, whether all of that was kept, and five messages: the connection, the session's start, its text, its end, and the connection's end.
 */
const maxRequests = 21;

/** Everything that somebody on this NATS asks and waits for an answer. */
async function countRequests(url: string) {
  const nats = await connect({ servers: url });
  let perMinute: string[] = [];
  nats.subscribe(">", {
    callback(_, { reply = "", subject }) {
      // What a consumer is given has a reply as well.
      if (reply !== "" && !reply.startsWith("$JS.ACK.")) perMinute.push(subject);
    },
  });
  await nats.flush();
  return {
    /** Since it was asked the last time. */
    async since(): Promise<readonly string[]> {
      await nats.flush();
      const before = perMinute;
      perMinute = [];
      return before;
    },
    [Symbol.asyncDispose]: () => nats.close(),
  };
}

function sessionOf(minute: number, events: number): ForeignSession {
  const session = foreignSession({ session: ulid(1_700_000_000_000 + minute * 60_000) });
  for (let i = 0; i < events; i++) session.add(...frameOf("v2", `line ${i} of ${minute}`, "log.written"));
  session.add(ended);
  return session;
}

async function importInto(
  recorder: Recorder,
  { session, source, events }: ForeignSession,
  project = "shop",
): Promise<bigint> {
  const imported = Imported.fromPartial({ session, source });
  const hello = { developer: "bob", project, upstream: "skaffold", tap: session, first_index: 1n, imported };
  const encoded = events.map((event) => Buffer.from(Event.encode(event).finish()));
  const item = (index: bigint, what: Item["what"]): PushRequest => ({
    body: { $case: "item", value: { index, connection: session, what } },
  });
  async function* requests(): AsyncGenerator<PushRequest, void> {
    yield { body: { $case: "hello", value: Hello.fromPartial(hello) } };
    yield item(1n, { $case: "recorded", value: { events: encoded, more: false } });
    yield item(2n, { $case: "recorded_end", value: { events: BigInt(events.length) } });
  }
  let added = 0n;
  for await (const { body } of recorder.push(requests(), { workspace: "acme", signal: AbortSignal.timeout(60_000) })) {
    if (body?.$case === "import_ended") added = body.value.added;
  }
  return added;
}

it("a session that follows others costs no more round trips to the log than the first ones", async () => {
  await using nats = await startTestNats();
  await using requests = await countRequests(nats.url);
  await using stores = await storesOn(nats.url);
  await using recording = new Recorder({
    stores: () => stores,
    normalizers,
    logger: silentLogger,
    lostAfterMs: 600_000,
  });
  await importInto(recording, sessionOf(0, 50));
  const perMinute: (readonly string[])[] = [];
  for (let minute = 1; minute <= 40; minute++) {
    await requests.since();
    const session = sessionOf(minute, 50);
    expect(await importInto(recording, session)).toBeGreaterThan(50n);
    perMinute.push((await requests.since()).filter((subject) => !subject.startsWith("tapedeck.ends.")));
  }
  // Leases are renewed during an import that takes long. The last imports are not all so slow.
  const [least = []] = perMinute.slice(-5).toSorted((a, b) => a.length - b.length);
  expect(least.length, least.join(" ")).toBeLessThanOrEqual(maxRequests);
});

it("a record of another ingest between two imports counts", async () => {
  await using nats = await startTestNats();
  const open = (name: string) => storesOn(nats.url, name);
  await using stores = await open("here");
  await using otherStores = await open("there");
  const common = { normalizers, logger: silentLogger, lostAfterMs: 600_000 };
  await using here = new Recorder({ stores: () => stores, ...common });
  await using there = new Recorder({ stores: () => otherStores, ...common });
  await importInto(here, sessionOf(1, 3));
  await importInto(there, sessionOf(3, 3));
  await expect(importInto(here, sessionOf(2, 3))).rejects.toThrow("has a later session");
  const fourth = sessionOf(4, 3);
  await importInto(there, fourth, "other");
  await expect(importInto(here, fourth)).rejects.toThrow("is in this Tapedeck already");
});
