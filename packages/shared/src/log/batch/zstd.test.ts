import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { sourceName } from "../../source.ts";
import { newEvent } from "../../testing/log-messages.ts";
import { encodeBatch, encodeEvents } from "./batch.ts";
import { zstd, zstdOf } from "./zstd.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const inOlderNode = zstdOf({});
const texts = ["a", '{"kind":"build.succeeded","subject":"web"}\n'.repeat(2_000)];

it("an older Node writes nothing compressed, and reads what a newer one has compressed", () => {
  const summary = "x".repeat(1_000);
  const events = Array.from({ length: 20 }, (_, at) => newEvent(source, at, { summary }).event);
  expect(encodeBatch(events, inOlderNode)).toEqual(encodeEvents(events));
  expect(encodeBatch(events).byteLength).toBeLessThan(encodeEvents(events).byteLength / 2);
  for (const bytes of [...texts.map((text) => Buffer.from(text)), randomBytes(70_000), randomBytes(300)]) {
    const frame = zstd.compress?.(bytes) ?? expect.fail("the tests run on a newer Node");
    for (const { decompress } of [zstd, inOlderNode])
      expect(Buffer.from(decompress(frame, bytes.byteLength)).equals(bytes)).toBe(true);
  }
});

it("bytes that are no frame, or one of another size, are refused", () => {
  const frame = zstd.compress?.(Buffer.from(texts[1] ?? "")) ?? expect.fail("the tests run on a newer Node");
  for (const { decompress } of [zstd, inOlderNode]) {
    expect(() => decompress(Buffer.from("no frame"), 8)).toThrow();
    expect(() => decompress(frame.subarray(0, 20), 100)).toThrow();
    expect(() => decompress(frame, 100)).toThrow();
  }
});
