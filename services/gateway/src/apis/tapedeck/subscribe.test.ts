import { openLog } from "@tapedeck/shared/log/jetstream";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { expect, it } from "vitest";
import type { SubscriptionMessage } from "./messages.ts";
import { subscribe } from "./subscribe.ts";

const sourceOf = (developer: string) =>
  sourceName({ workspace: "default", developer, project: "shop", upstream: "skaffold" });

async function desk() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startTestNats());
  const connection = stack.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  const log = stack.use(await openLog(connection, { syncKnown: true }));
  const over = new AbortController();
  stack.defer(() => over.abort());
  const owned = stack.move();
  return {
    alice: testWriter(log.writer, sourceOf("alice")),
    bob: testWriter(log.writer, sourceOf("bob")),
    at: (seq: number) => `${log.epoch}-${seq}`,
    over,
    /** What a subscriber gets, as it comes. */
    open(filter: object, bookmarkMs: number) {
      const got: SubscriptionMessage[] = [];
      const asked = { workspace: "default", filter, afterSeq: 0, bookmarkMs };
      const read = async () => {
        for await (const message of subscribe(log.reader, asked, over.signal)) got.push(message);
      };
      return { got, done: read() };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

it("bookmarks tell how far one is, though nothing of it was for one", async () => {
  await using on = await desk();
  await on.alice.append(2);
  // By subject the server leaves out what does not match; by `subjects` we do.
  const [bySubject, byUs] = [on.open({ developers: ["alice"] }, 0), on.open({ subjects: ["web"] }, 0)];
  await until(() => bySubject.got.some(({ type }) => type === "caught_up"), { message: "caught_up" });
  await until(() => byUs.got.some(({ type }) => type === "caught_up"), { message: "caught_up" });
  const last = await on.bob.append(3);
  for (const { got } of [bySubject, byUs]) {
    await until(() => got.at(-1)?.position === on.at(last), { message: "the bookmark" });
    expect(got.at(-1)).toMatchObject({
      type: "bookmark",
      position: on.at(last),
      json: `{"type":"bookmark","position":"${on.at(last)}"}`,
    });
    const seqs = got.map(({ position }) => Number(position.split("-")[1]));
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
  }
});

it("but not more often than every so often", async () => {
  await using on = await desk();
  const { got, done } = on.open({ developers: ["alice"] }, 3_600_000);
  await until(() => got.length === 1, { message: "caught_up" });
  for (let n = 0; n < 10; n++) await on.bob.append(1);
  const last = await on.alice.append(1);
  await until(() => got.length === 2, { message: "the event" });
  expect(got.map(({ type, position }) => [type, position])).toEqual([
    ["caught_up", on.at(0)],
    ["event", on.at(last)],
  ]);
  on.over.abort();
  await done;
});

it("what is live is rendered once for all who follow", async () => {
  await using on = await desk();
  const readers = [
    on.open({}, 5_000),
    on.open({ developers: ["alice"] }, 5_000),
    on.open({ kinds: ["build.*"] }, 5_000),
  ];
  await until(() => readers.every(({ got }) => got.length === 1), { message: "all to have caught up" });
  await on.alice.append(1);
  await until(() => readers.every(({ got }) => got.length === 2), { message: "the event" });
  expect(new Set(readers.map(({ got }) => got[1])).size).toBe(1);
});
