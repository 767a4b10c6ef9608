import { readFileSync } from "node:fs";
import { type DescMethod, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { registry } from "@tapedeck/shared/descriptors/registry";

export type SampleCall = {
  readonly n: number;
  readonly rpc: string;
  /** Bytes of the request. */
  readonly request: Uint8Array;
  /** Bytes of the answer; undefined for an error. */
  readonly wire: Buffer | undefined;
};

/** The unary calls that a real Vagrant server answered (packages/fakes/recordings/vagrant, whose README says what stands there). */
export function sampleCalls(): readonly SampleCall[] {
  const wires = new Map(lines("up.wire.jsonl").map(({ n, b64 }) => [n, Buffer.from(b64, "base64")]));
  return lines("up.jsonl")
    .filter(({ kind }) => kind === "unary")
    .map(({ n, rpc, request = {} }) => ({ n, rpc, request: requestOf(rpc, request), wire: wires.get(n) }));
}

/** The bytes of a request, by the method's name on the wire and JSON with the names of the .proto file. */
export function requestOf(rpc: string, json: JsonObject): Uint8Array {
  const method = methods.find(({ name }) => name === rpc);
  if (method === undefined) throw new Error(`no method ${rpc}`);
  return toBinary(method.input, fromJson(method.input, json, { registry }));
}

const methods: readonly DescMethod[] = registry.getService("hashicorp.vagrant.Vagrant")?.methods ?? [];

function lines(name: string) {
  const file = new URL(`../../../../../../packages/fakes/recordings/vagrant/samples/${name}`, import.meta.url);
  return readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** The messages in the fields of an answer, as they stand there: of most answers a record, of a list all its items. */
export function within(answer: Uint8Array = new Uint8Array()): readonly Uint8Array[] {
  const reader = new BinaryReader(answer);
  const messages: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    reader.tag();
    messages.push(reader.bytes());
  }
  return messages;
}
