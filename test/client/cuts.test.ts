import { setImmediate as turn } from "node:timers/promises";
import type { Client, Message, SubscriptionOptions, WebSocketClass } from "@tapedeck/client";
import { seqIn } from "@tapedeck/shared/testing/positions";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { WebSocket as WsWebSocket } from "ws";
import { wrongWith } from "../transports/history.ts";
import { impatientClient } from "./following.ts";
import { startLiveHarness, type Written } from "./live-harness.ts";

const cuts = 50;
const restartEvery = 20;

type Reader = { readonly options: SubscriptionOptions; readonly wants: (event: Written) => boolean };

const cases: readonly Reader[] = [
  { options: {}, wants: () => true },
  { options: { kinds: ["build.*"] }, wants: ({ kind }) => kind.startsWith("build.") },
  { options: { kinds: ["*.failed"] }, wants: ({ kind }) => kind.endsWith(".failed") },
  { options: { developers: ["bob"] }, wants: ({ source }) => source.includes("/bob/") },
  { options: { subjects: ["api"] }, wants: ({ subject }) => subject === "api" },
];

it("readers get each event once and in order, however often their connections are cut", async () => {
  await using harness = await startLiveHarness();
  const random = seeded("cuts");
  const done = { cuts: 0, restarts: 0 };
  let restarting: Promise<void> | undefined;

  const restart = async () => {
    done.restarts++;
    await harness.stop();
    await harness.start();
    restarting = undefined;
  };
  /** Cuts each connection after a few bytes or many, until all cuts are made; `least` is the minimum. */
  const client = async (Of: WebSocketClass, least: number) => {
    const proxy = await harness.cuttable();
    class Cut extends Of {
      constructor(url: string, protocols: string[]) {
        if (done.cuts < cuts) proxy.cutAfter = least + random.below(random.below(3) === 0 ? 400 : 30_000);
        if (++done.cuts % restartEvery === 0) restarting ??= restart();
        super(url, protocols);
      }
    }
    return impatientClient({ url: `http://${proxy.address}`, WebSocket: Cut, maxWaiting: 100_000 });
  };
  // The runtime's WebSocket reuses the connection that `fetch` left, which must not be cut: it is not cut during its
  // handshake, so that nothing is fetched.
  const clients = await Promise.all([client(WebSocket as WebSocketClass, 400), client(WsWebSocket, 0)]);

  const read = (client: Client, { options, wants }: Reader, isSlow: boolean) => {
    const received: Message[] = [];
    const run = async () => {
      for await (const message of client.subscribe({ ...options, after: "start" })) {
        received.push(message);
        if (isSlow) await turn();
      }
    };
    const ended = run();
    ended.catch(() => {});
    return { options, wants, received, ended };
  };
  const readers = clients.flatMap((client) => cases.map((one, index) => read(client, one, index % 2 === 1)));

  const written: Written[] = [];
  const writers = ["alice", "bob"].map((developer) => harness.writer(developer));
  while (done.cuts < cuts) {
    for (const writer of writers) {
      writer.session.text("x".repeat(random.below(500)));
      written.push(...(await writer.written()));
      written.push(...(await writer.builds(1 + random.below(8), ["web", "api"][random.below(2)])));
    }
  }
  await restarting;
  const due = ({ wants }: Reader) => written.filter(wants).map(({ id, position }) => ({ id, seq: seqIn(position) }));
  const eventsOf = (received: readonly Message[]) => received.filter(({ type }) => type === "event");
  const hasAll = (reader: (typeof readers)[number]) =>
    eventsOf(reader.received).length >= due(reader).length && reader.received.some(({ type }) => type === "caught_up");
  // The check below reports what is missing.
  await until(() => readers.every(hasAll), { message: "everybody to have everything" }).catch(() => {});
  for (const client of clients) client.close();

  for (const reader of readers) {
    await reader.ended;
    const { options, received } = reader;
    const caughtUp = received.filter(({ type }) => type === "caught_up").length;
    expect({ options, caughtUp, wrong: wrongWith(received, due(reader)).slice(0, 5) }).toEqual({
      options,
      caughtUp: 1,
      wrong: [],
    });
  }
  console.log(`${readers.length} readers, ${written.length} events, ${done.cuts} connections, seed ${random.seed}`);
});
