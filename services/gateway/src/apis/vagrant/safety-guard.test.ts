import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "vitest";
import type { WriteName } from "./methods.ts";
import { dangerOf } from "./safety-guard.ts";
import { requestOf } from "./testing/sample.ts";

// Whatever a request looks like on the wire: what Go's protobuf library takes it for is what counts.

const noop = requestOf("QueueJob", { job: { noop: {}, target_runner: { id: { id: "R1" } } } });
const runnerless = requestOf("QueueJob", { job: { noop: {} } });
const labelled = requestOf("QueueJob", { job: { labels: { a: "b" } } });

const danger = (method: WriteName, ...parts: readonly Uint8Array[]) =>
  dangerOf(method, Buffer.concat(parts), { version: async () => "2.3.7", hasMoreJobsThan: async () => false });

/** A field that Go skips, as its wire type is another one, and whose number would be taken for a length. */
const skipped = (field: number, length: number) =>
  new BinaryWriter().tag(field, WireType.Varint).uint32(length).finish();

const inField = (field: number, bytes: Uint8Array) =>
  new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(bytes).finish();

const inGroup = (field: number, bytes: Uint8Array) =>
  Buffer.concat([
    new BinaryWriter().tag(field, WireType.StartGroup).finish(),
    bytes,
    new BinaryWriter().tag(field, WireType.EndGroup).finish(),
  ]);

describe("a request that Vagrant would read as dangerous is dangerous", () => {
  it("behind a field of another wire type", async () => {
    expect(await danger("queueJob", skipped(1, labelled.length), labelled, noop)).toMatch(/labels/);
  });

  it("behind one inside of the job", async () => {
    const labels = inField(6, inField(1, Buffer.from("a")));
    const job = Buffer.concat([skipped(1, labels.length), labels]);
    expect(await danger("queueJob", inField(1, job), noop)).toMatch(/labels/);
  });

  it.each(["__proto__", "constructor", "", "\u{1F4FC}"])("a label that is called %j", async (name) => {
    const labels = inField(6, Buffer.concat([inField(1, Buffer.from(name)), inField(2, Buffer.from("b"))]));
    expect(await danger("queueJob", inField(1, labels), noop)).toMatch(/labels/);
    const overrides = inField(8, inField(1, Buffer.from(name)));
    expect(await danger("queueJob", inField(1, overrides), noop)).toMatch(/data_source_overrides/);
  });

  it("a label without a name or a value", async () => {
    expect(await danger("queueJob", inField(1, inField(6, Buffer.alloc(0))), noop)).toMatch(/labels/);
  });

  it("a runner or an operation that stands where it does not count", async () => {
    const runner = requestOf("QueueJob", { job: { target_runner: { id: { id: "R1" } } } });
    expect(await danger("queueJob", inGroup(1, runner), runnerless)).toMatch(/target_runner/);
    const named = inField(5, inField(2, inField(1, Buffer.from("R1"))));
    expect(await danger("queueJob", runnerless, inField(1, inGroup(5, named)))).toMatch(/target_runner/);
    const field = noop.subarray(2);
    expect(await danger("queueJob", runnerless, inField(1, inGroup(70, field)))).toMatch(/target_runner/);
  });

  it("the last of several operations, and of several runners", async () => {
    const docs = requestOf("QueueJob", { job: { docs: {} } });
    expect(await danger("queueJob", noop, docs)).toMatch(/docs/);
    expect(await danger("queueJob", docs, noop)).toBeUndefined();
    const nobody = requestOf("QueueJob", { job: { target_runner: { id: {} } } });
    const any = requestOf("QueueJob", { job: { target_runner: { any: {} } } });
    expect(await danger("queueJob", noop, any, nobody)).toMatch(/target_runner/);
    expect(await danger("queueJob", nobody, noop)).toBeUndefined();
  });

  it("a record of another wire type, which is none", async () => {
    for (const [method, name] of [
      ["upsertTarget", "target"],
      ["upsertBox", "box"],
    ] as const) {
      for (const field of [1, 2]) {
        expect(await danger(method, inGroup(field, Buffer.alloc(0)))).toMatch(`without a ${name}`);
        expect(await danger(method, skipped(field, 0))).toMatch(`without a ${name}`);
      }
    }
  });

  it("a parent behind a field of another wire type", async () => {
    const parent = requestOf("UpsertTarget", { target: { parent: { resource_id: "T0" } } });
    const target = requestOf("UpsertTarget", { target: { resource_id: "T1", name: "web1" } });
    const field = (target[0] ?? 0) >> 3;
    expect(await danger("upsertTarget", skipped(field, parent.length), parent, target)).toMatch(/parent/);
  });
});

it("deep nesting and garbage are no requests", async () => {
  const unreadable = { code: 13, message: "grpc: error unmarshalling request" };
  const deep = Buffer.concat([Buffer.alloc(500_000, 0x0b), Buffer.alloc(500_000, 0x0c)]);
  for (const bytes of [deep, Buffer.from([0x0a]), Buffer.from([0x0f]), Buffer.from([0x0c]), Buffer.from([0x00])]) {
    await expect(danger("queueJob", bytes)).rejects.toMatchObject(unreadable);
  }
});
