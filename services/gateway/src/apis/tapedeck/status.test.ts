import type { WaitingResponse } from "@tapedeck/proto/tapedeck/v1/maintain";
import type { LogReader } from "@tapedeck/shared/log/log";
import { endOf, offsetOf } from "@tapedeck/shared/log/offset";
import { expect, it } from "vitest";
import { statusOf } from "./status.ts";

const position = "000000-000000";
const query = { position: async () => ({ position, log_position: position }), setAside: async () => ({ sources: [] }) };

/** A log that keeps messages up to the 200th; `since`: the first message of the last day. */
const logWith = (messages: number, since: number | undefined) =>
  ({
    bounds: async () => ({ firstOffset: offsetOf(1), lastOffset: endOf(200), messages, bytes: messages * 10 }),
    firstSince: async () => (since === undefined ? undefined : offsetOf(since)),
  }) as unknown as LogReader;

const waitingFor = (source: string): WaitingResponse => ({ source, items: 3n, bytes: 20n, dropped: 0n });
const services = {
  async *waiting() {
    yield waitingFor("acme/alice/shop/skaffold");
    yield waitingFor("other/bob/shop/skaffold");
  },
};
const everybody = { workspace: "acme" };

it.each([
  ["part of it", 200, 151, { messages: 50, bytes: 500 }],
  ["nothing", 200, undefined, { messages: 0, bytes: 0 }],
  ["all of it", 200, 1, { messages: 200, bytes: 2000 }],
  ["no more than is kept, where messages were erased", 20, 101, { messages: 20, bytes: 200 }],
  ["nothing of an empty log", 0, undefined, { messages: 0, bytes: 0 }],
])("the log grew in a day by %s", async (_, messages, since, lastDay) => {
  const { log } = await statusOf({ query, log: logWith(messages, since), services }, everybody);
  expect(log).toEqual({ messages, bytes: messages * 10, lastDay });
});

it("a token of one workspace learns what waits there, and nothing of the log's size", async () => {
  const deps = { query, log: logWith(200, 1), services };
  const sources = async (caller: Parameters<typeof statusOf>[1]) =>
    (await statusOf(deps, caller)).waiting?.map(({ source }) => source);
  const all = ["acme/alice/shop/skaffold", "other/bob/shop/skaffold"];
  const roles = new Set(["viewer"] as const);
  expect(await sources({ workspace: "acme", roles })).toEqual(all.slice(0, 1));
  expect((await statusOf(deps, { workspace: "acme", roles })).log).toBeNull();
  expect(await sources(everybody)).toEqual(all);
  expect(await sources({ workspace: "acme", roles, everywhere: true })).toEqual(all);
  expect((await statusOf(deps, everybody)).waiting?.[0]).toEqual({
    source: all[0],
    items: 3,
    bytes: 20,
    dropped: 0,
  });
});

it("says the rest where what records does not answer", async () => {
  const away = {
    // biome-ignore lint/correctness/useYield: it fails before
    async *waiting(): AsyncGenerator<WaitingResponse> {
      throw new Error("away");
    },
  };
  const { waiting, log } = await statusOf({ query, log: logWith(200, 1), services: away }, everybody);
  expect([waiting, log?.messages]).toEqual([null, 200]);
});

it("asks for the events that were set aside in the caller's workspace, or in all that it may see", async () => {
  const requests: string[] = [];
  const refused = {
    source: "acme/alice/shop/skaffold",
    events: 2n,
    error_code: "22003",
    error: "integer out of range",
  };
  const found = { ...refused, first_position: position, last_position: position, last_at: { seconds: 1n, nanos: 0 } };
  const telling = {
    ...query,
    async setAside(workspace: string) {
      requests.push(workspace);
      return { sources: [found] };
    },
  };
  const deps = { query: telling, log: logWith(200, 1), services };
  const roles = new Set(["viewer"] as const);
  const { setAside } = await statusOf(deps, { workspace: "acme", roles });
  await statusOf(deps, { workspace: "acme", roles, everywhere: true });
  await statusOf(deps, everybody);
  expect(requests).toEqual(["acme", "", ""]);
  expect(setAside).toEqual([
    {
      source: refused.source,
      events: 2,
      firstPosition: position,
      lastPosition: position,
      lastAt: "1970-01-01T00:00:01Z",
      errorCode: "22003",
      error: "integer out of range",
    },
  ]);
});
