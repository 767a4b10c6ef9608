import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary, type JsonValue, toJson } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { Args_Hash } from "../gen/vagrant/sdk/sdk.ts";
import { GetJobStreamResponse, Job, Target, VagrantService } from "../gen/vagrant/vagrant.ts";

const descriptors = readFileSync(new URL("../gen/descriptors.binpb", import.meta.url));
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors));
const wireLines = readFileSync(
  new URL("../../packages/fakes/recordings/vagrant/samples/up.wire.jsonl", import.meta.url),
  "utf8",
)
  .split("\n")
  .filter(Boolean)
  .map((line) => JSON.parse(line) as { n: number; rpc: string; type: string; b64: string });

/** A message of a newer server: what we know of it, then fields 31 (text) and 32 (a number). */
function withNews(known: Uint8Array): Buffer {
  const news = new BinaryWriter()
    .uint32((31 << 3) | 2)
    .string("news")
    .uint32(32 << 3)
    .uint32(7)
    .finish();
  return Buffer.concat([known, news]);
}

type Type<T> = { readonly decode: (bytes: Uint8Array) => T; readonly encode: (message: T) => BinaryWriter };

type Method = {
  readonly responseSerialize: (message: { _unknownFields?: object }) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => { _unknownFields?: object };
};

function again<T>(type: Type<T>, bytes: Uint8Array): Buffer {
  return Buffer.from(type.encode(type.decode(bytes)).finish());
}

it("keeps fields that it does not know, at the top and inside", () => {
  const line = GetJobStreamResponse.encode({ event: { $case: "terminal", value: { events: [], buffered: true } } });
  const top = withNews(line.finish());
  expect(again(GetJobStreamResponse, top)).toEqual(top);

  const event = withNews(Buffer.alloc(0));
  const terminal = new BinaryWriter().uint32(10).bytes(event).finish();
  const inside = Buffer.from(new BinaryWriter().uint32(26).bytes(terminal).finish());
  expect(again(GetJobStreamResponse, inside)).toEqual(inside);
});

it("keeps an operation and a result that it does not know", () => {
  const job = new BinaryWriter().uint32((60 << 3) | 2).bytes(Buffer.from([8, 1]));
  const result = job.uint32((107 << 3) | 2).bytes(Buffer.from([0x42, 2, 8, 1]));
  const bytes = Buffer.from(result.finish());
  expect(Job.decode(bytes).operation).toBeUndefined();
  expect(Job.decode(again(Job, bytes))).toEqual(Job.decode(bytes));
  expect(again(Job, bytes)).toHaveLength(bytes.length);
});

it("keeps the bytes of an Any of any type, without decoding it", () => {
  const value = Buffer.from([0xff, 0, 0x80, 1]);
  const record = { type_url: "type.googleapis.com/vendor.Unheard", value };
  const target = Target.encode(Target.fromPartial({ resource_id: "x", record })).finish();
  expect(Target.decode(again(Target, target)).record).toMatchObject(record);

  const entries = [{ key: record, value: { ...record, type_url: "" } }];
  const hash = Args_Hash.encode(Args_Hash.fromPartial({ entries })).finish();
  expect(again(Args_Hash, hash)).toEqual(Buffer.from(hash));
});

it.each(wireLines)("reads answer $n, of $rpc, whole, and writes the same", ({ rpc, type, b64 }) => {
  const desc = registry.getMessage(type);
  const method = Object.values(VagrantService).find(({ path }) => path.endsWith(`/${rpc}`)) as Method | undefined;
  if (desc === undefined || method === undefined) throw new Error(`no ${type} or ${rpc}`);
  const json = (bytes: Uint8Array): JsonValue => toJson(desc, fromBinary(desc, bytes), { registry });
  const bytes = Buffer.from(b64, "base64");
  const written = method.responseSerialize(method.responseDeserialize(bytes));
  expect(json(written)).toEqual(json(bytes));
  // The order of the fields may differ; their lengths do not.
  expect(written).toHaveLength(bytes.length);
  expect(method.responseDeserialize(bytes)._unknownFields).toEqual({});
});

it("names the methods as they are on the wire", () => {
  const paths = Object.values(VagrantService).map(({ path }) => path);
  expect(paths).toHaveLength(34);
  expect(VagrantService.listJobs.path).toBe("/hashicorp.vagrant.Vagrant/_ListJobs");
});
