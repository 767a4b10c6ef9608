import type { Item, PushRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { expect, it } from "vitest";
import { checkedRequests } from "./checked-requests.ts";

const frame = (index: bigint, bytes: Buffer = Buffer.from("x"), more = false): Item => ({
  index,
  connection: "C",
  at: undefined,
  what: { $case: "frame", value: { channel: "v1", bytes, more } },
});

async function checked(...bodies: PushRequest["body"][]): Promise<bigint[]> {
  async function* requests(): AsyncGenerator<PushRequest> {
    for (const body of bodies) yield { body };
  }
  const taken = await Array.fromAsync(checkedRequests(requests()));
  return taken.flatMap(({ body }) => (body?.$case === "items" ? body.value.items.map(({ index }) => index) : []));
}

it("takes items alone and together, and holds each to the same rules", async () => {
  const item = { $case: "item", value: frame(1n) } as const;
  const items = (...value: Item[]) => ({ $case: "items", value: { items: value } }) as const;
  expect(await checked(item, items(frame(2n), frame(3n)), items(), items(frame(4n)))).toEqual([1n, 2n, 3n, 4n]);
  await expect(checked(items(frame(1n), frame(3n)))).rejects.toThrow("item 3 came where 2 was expected");
  await expect(checked(items(frame(1n, Buffer.from("x"), true), frame(2n)))).rejects.toThrow("item 2 came where 1");
});

it("takes labels up to 256 KiB, with a time that is one", async () => {
  const item = (labels: Record<string, string>, since?: { seconds: bigint; nanos: number }) =>
    ({
      $case: "item",
      value: {
        index: 1n,
        connection: "C",
        at: undefined,
        what: { $case: "labelled", value: { labels, since } },
      },
    }) as const;
  expect(await checked(item({ branch: "x".repeat(260_000) }, { seconds: 1n, nanos: 0 }))).toEqual([1n]);
  await expect(checked(item({ branch: "x".repeat(270_000) }))).rejects.toThrow(
    "item 1: its labels have more than 262144 bytes",
  );
  await expect(checked(item({}, { seconds: 1n << 60n, nanos: 0 }))).rejects.toThrow("item 1: since is not a time");
});
