import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  type JsonObject,
  type JsonValue,
} from "@bufbuild/protobuf";
import {
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { fromGatewayJson, toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mapStringFields, type StringMapper } from "./mask-strings.ts";

const logEntry = messageType("proto.LogEntry");
const state = messageType("proto.State");

const stars = (text: string) => "*".repeat(Buffer.byteLength(text));
const maskSecrets: StringMapper = (text) => text.replace(/(?<=SECRET=)\S+/g, stars);
const maskValues: StringMapper = (text, path) => (path.endsWith(".key") ? undefined : stars(text));

function masked(desc: DescMessage, json: JsonObject, map = maskSecrets): JsonObject {
  return toGatewayJson(desc, mapStringFields(desc, fromGatewayJson(desc, json), map).bytes);
}

/** Every string of a message with the path it is shown under. */
function visited(desc: DescMessage, bytes: Uint8Array): string[] {
  const seen: string[] = [];
  mapStringFields(desc, bytes, (text, path) => void seen.push(`${path}=${text}`));
  return seen;
}

describe("the mapper sees", () => {
  it("strings in messages, lists and maps, but not enums, numbers or timestamps", () => {
    const json = {
      buildState: { artifacts: { web: "Complete" }, statusCode: "BUILD_UNKNOWN" },
      forwardedPorts: { "8080": { podName: "web-1", targetPort: { type: 1, strVal: "http" } } },
      debuggingContainers: [{ podName: "a" }, { podName: "b", debugPorts: { jdwp: 5005 } }],
    };
    expect(visited(state, fromGatewayJson(state, json))).toEqual([
      "buildState.artifacts.key=web",
      "buildState.artifacts.value=Complete",
      "forwardedPorts.value.podName=web-1",
      "forwardedPorts.value.targetPort.strVal=http",
      "debuggingContainers.podName=a",
      "debuggingContainers.podName=b",
      "debuggingContainers.debugPorts.key=jdwp",
    ]);
  });

  it("each occurrence of a repeated single field, because only a decoder lets the last one win", () => {
    expect(visited(logEntry, Buffer.from("\x1a\x01a\x1a\x01b"))).toEqual(["entry=a", "entry=b"]);
  });

  it("no field of another wire type than described, and no unknown field", () => {
    const asVarint = [0x18, 5];
    const unknownString = [0x7a, 1, 0x61];
    const unknownGroup = [0x7b, 0x1a, 1, 0x61, 0x73, 0x74, 0x7d, 0, 0, 0, 0, 0x79, 0, 0, 0, 0, 0, 0, 0, 0, 0x7c];
    expect(visited(logEntry, Uint8Array.from([...asVarint, ...unknownString, ...unknownGroup]))).toEqual([]);
  });
});

describe("masking", () => {
  it("overwrites parts of a text and nothing else", () => {
    const json = { timestamp: "2026-11-20T15:51:04.000000001Z", entry: "A=1 SECRET=abc B=2", event: {} };
    expect(masked(logEntry, json)).toEqual({ ...json, entry: "A=1 SECRET=*** B=2" });
  });

  it("counts bytes, not characters", () => {
    expect(masked(logEntry, { entry: "ä€😀 SECRET=pä€😀 ü" }).entry).toBe("ä€😀 SECRET=********** ü");
  });

  it("reaches values of maps of messages", () => {
    const json = { forwardedPorts: { "-1": { podName: "SECRET=x" } } };
    expect(masked(state, json)).toMatchObject({ forwardedPorts: { "-1": { podName: "SECRET=*" } } });
  });

  it("returns its input if nothing changed, and never writes to it", () => {
    const clean = fromGatewayJson(logEntry, { entry: "nothing here" });
    expect(mapStringFields(logEntry, clean, maskSecrets)).toEqual({ bytes: clean, changed: 0, malformed: false });
    expect(mapStringFields(logEntry, clean, maskSecrets).bytes).toBe(clean);
    // A Buffer too, of which `slice` would be a view.
    const secret = Buffer.from(fromGatewayJson(logEntry, { entry: "SECRET=x" }));
    const before = Uint8Array.from(secret);
    expect(mapStringFields(logEntry, secret, maskSecrets)).toMatchObject({ changed: 1, malformed: false });
    expect(Uint8Array.from(secret)).toEqual(before);
  });

  it("reads a view of a larger buffer", () => {
    const message = fromGatewayJson(logEntry, { entry: "SECRET=x" });
    const view = Buffer.concat([Buffer.from("zz"), message, Buffer.from("zz")]).subarray(2, 2 + message.length);
    expect(Buffer.from(mapStringFields(logEntry, view, maskSecrets).bytes).toString()).toContain("SECRET=*");
  });

  it("leaves bytes that are not UTF-8 unchanged, unless they are masked", () => {
    const text = Buffer.from([...Buffer.from("\xff é SECRET="), 0xe2, 0x82, ...Buffer.from(" "), 0xc3]);
    const bad = Buffer.concat([Buffer.from([0xff]), text, Buffer.from([0xed, 0xa0, 0x80])]);
    const message = Buffer.concat([Buffer.from([0x1a, bad.length]), bad]);
    expect(visited(logEntry, message)).toEqual(["entry=\x1aÿ é SECRET=\x1a\x1a \x1a\x1a\x1a\x1a"]);
    const expected = Buffer.from(message);
    expected.fill("*", expected.indexOf(0xe2), expected.indexOf(0xe2) + 2);
    expect(mapStringFields(logEntry, message, maskSecrets).bytes).toEqual(expected);
  });

  it("refuses a text of another length, and passes on the mapper's own errors", () => {
    const bytes = fromGatewayJson(logEntry, { entry: "ä" });
    expect(() => mapStringFields(logEntry, bytes, () => "*")).toThrow(RangeError);
    const failing = () => mapStringFields(logEntry, bytes, () => JSON.parse("{") as string);
    expect(failing).toThrow(SyntaxError);
  });

  it("reaches into described groups", () => {
    const group = groupHolder();
    const bytes = Buffer.from("\x0b\x12\x08SECRET=x\x0c");
    expect(visited(group, bytes)).toEqual(["inner.text=SECRET=x"]);
    expect(Buffer.from(mapStringFields(group, bytes, maskSecrets).bytes).toString()).toBe("\x0b\x12\x08SECRET=*\x0c");
  });
});

describe("malformed input is returned unchanged", () => {
  const secret = [...Buffer.from("\x1a\x08SECRET=x")];
  const cases = {
    "cut in a tag": [...secret, 0x9a],
    "cut in a length": [...secret, 0x1a, 0x85],
    "a length beyond the end": [...secret, 0x1a, 0x05, 0x61],
    "a length beyond the surrounding message": [...secret, 0x12, 0x02, 0x0a, 0x05, 0x1a, 0x03, 0x61, 0x61, 0x61],
    "a huge length": [...secret, 0x1a, ...Array(9).fill(0xff), 0x01],
    "a varint without end": [...secret, 0x18, ...Array(10).fill(0x80), 0x01],
    "field number 0": [...secret, 0x02, 0x00],
    "wire type 6": [...secret, 0x1e],
    "a cut fixed64": [...secret, 0x19, 0, 0, 0],
    "a group without end": [...secret, 0x7b, 0x08, 0x01],
    "an end without group": [...secret, 0x7c],
    "the end of another group": [...secret, 0x7b, 0x74],
    "groups too deep": [...secret, ...Array(5000).fill(0x7b), ...Array(5000).fill(0x7c)],
  };
  it.each(Object.entries(cases))("%s", (_, input) => {
    const bytes = Uint8Array.from(input);
    const result = mapStringFields(logEntry, bytes, maskSecrets);
    expect(result).toEqual({ bytes: Uint8Array.from(input), changed: 0, malformed: true });
    expect(result.bytes).toBe(bytes);
  });
});

describe("for any message", () => {
  const anyText = fc.string({ unit: "binary" });
  const anyMap = fc.dictionary(
    anyText.filter((key) => key !== "__proto__"),
    anyText,
    { noNullPrototype: true },
  );
  const anyPort = fc.record({ localPort: fc.integer({ min: 0, max: 65535 }), podName: anyText, address: anyText });
  const anyState = fc.record({
    buildState: fc.record({ artifacts: anyMap, autoTrigger: fc.boolean(), statusCode: fc.nat() }),
    forwardedPorts: fc.dictionary(fc.nat(99999).map(String), anyPort, { noNullPrototype: true }),
    debuggingContainers: fc.array(fc.record({ status: anyText, podName: anyText })),
  }) satisfies fc.Arbitrary<JsonObject>;

  it("masking every value gives the bytes that an encoder gives for masked values", () => {
    fc.assert(
      fc.property(anyState, (json) => {
        const bytes = fromGatewayJson(state, json);
        const { bytes: out, malformed } = mapStringFields(state, bytes, maskValues);
        expect(malformed).toBe(false);
        expect(Buffer.from(out)).toEqual(Buffer.from(fromGatewayJson(state, masksOf(json))));
      }),
    );
  });

  it("unknown fields and groups in between are unchanged", () => {
    const unknown = Buffer.from([0x7b, 0x0a, 1, 0x61, 0x7c, 0xf2, 0x01, 2, 0x53, 0x53]);
    fc.assert(
      fc.property(anyText, anyText, (before, after) => {
        const withUnknown = (...entries: string[]) =>
          Buffer.concat(entries.flatMap((entry) => [fromGatewayJson(logEntry, { entry }), unknown]));
        const { bytes } = mapStringFields(logEntry, withUnknown(before, after), maskValues);
        expect(Buffer.from(bytes)).toEqual(withUnknown(stars(before), stars(after)));
      }),
    );
  });

  it("no bytes make it throw, write to its input, change a length, or return what a decoder can no longer read", () => {
    const mutated = fc
      .tuple(anyState, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }))
      .map(([json, edits]) => {
        const bytes = fromGatewayJson(state, json);
        for (const [at, value] of edits) bytes[at % Math.max(1, bytes.length)] = value;
        return bytes;
      });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), mutated), (bytes) => {
        const input = Uint8Array.from(bytes);
        const result = mapStringFields(state, input, stars);
        expect(input).toEqual(bytes);
        expect(result.bytes.length).toBe(bytes.length);
        // The other way round it may: text that was no UTF-8 is, once all of it is masked.
        if (decodes(bytes)) expect(decodes(result.bytes)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});

function masksOf(value: JsonValue): JsonValue {
  if (typeof value === "string") return stars(value);
  if (Array.isArray(value)) return value.map(masksOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, masksOf(inner)]));
}

function decodes(bytes: Uint8Array): boolean {
  try {
    fromBinary(state, bytes);
    return true;
  } catch {
    return false;
  }
}

/** `message Holder { optional group Inner = 1 { optional string text = 2; } }` */
function groupHolder(): DescMessage {
  const file = create(FileDescriptorProtoSchema, {
    name: "holder.proto",
    syntax: "proto2",
    messageType: [
      {
        name: "Holder",
        field: [{ name: "inner", number: 1, label: 1, type: Type.GROUP, typeName: ".Holder.Inner" }],
        nestedType: [{ name: "Inner", field: [{ name: "text", number: 2, label: 1, type: Type.STRING }] }],
      },
    ],
  });
  const holder = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getMessage("Holder");
  if (holder === undefined) throw new Error("no Holder");
  return holder;
}
