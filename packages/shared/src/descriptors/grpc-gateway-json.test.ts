import { readdirSync, readFileSync } from "node:fs";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { describe, expect, it } from "vitest";
import { fromGatewayJson, toGatewayJson, withDefaults } from "./grpc-gateway-json.ts";
import { messageType } from "./registry.ts";

const fixtures = new URL("../../../fakes/recordings/skaffold/", import.meta.url);
const eventTypes = { v1: messageType("proto.LogEntry"), v2: messageType("proto.v2.Event") };
const stateTypes = { v1: messageType("proto.State"), v2: messageType("proto.v2.State") };
const files = readdirSync(fixtures, { recursive: true, encoding: "utf8" });

function lines<T>(file: string): T[] {
  const text = readFileSync(new URL(file, fixtures), "utf8");
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T);
}

function messages(file: string): Buffer[] {
  return lines<{ b64: string }>(file).map((line) => Buffer.from(line.b64, "base64"));
}

/** The results of an HTTP stream; one that failed ends with an `error` line instead. */
function results(file: string): JsonObject[] {
  return lines<{ result?: JsonObject }>(file).flatMap((line) => (line.result ? [line.result] : []));
}

/** Version 0.40 printed no defaults; all later ones say everything. */
const printsDefaults = (file: string) => !file.startsWith("21-");

describe("recorded streams, over gRPC and over HTTP", () => {
  const httpFile = (file: string) => file.replace("grpc-v", "v").replace(".grpc.ndjson", ".ndjson");
  const recordedTwice = files.filter((file) => file.endsWith(".grpc.ndjson") && files.includes(httpFile(file)));
  it.each(recordedTwice)("%s", (file) => {
    const desc = eventTypes[file.includes("grpc-v1-") ? "v1" : "v2"];
    const recorded = results(httpFile(file));
    const sent = messages(file);
    const rendered = sent.map((bytes) => toGatewayJson(desc, bytes));
    const expected = printsDefaults(file) ? recorded : recorded.map((json) => withDefaults(desc, json));
    expect(sent.length).toBeGreaterThan(0);
    expect(rendered).toEqual(expected);
    // Key order as well, so that a line of ours can be compared with a line of theirs.
    expect(JSON.stringify(rendered)).toBe(JSON.stringify(expected));
    const encoded = recorded.map((json) => fromGatewayJson(desc, json));
    expect(encoded.map((bytes) => toGatewayJson(desc, bytes))).toEqual(rendered);
    expect(encoded.map((bytes) => Buffer.from(bytes))).toEqual(sent);
  });
});

describe("recorded states", () => {
  const stateFiles = files.filter((file) => /v[12]-state-.*\.json$/.test(file) && printsDefaults(file));
  it.each(stateFiles)("%s", (file) => {
    const recorded = JSON.parse(readFileSync(new URL(file, fixtures), "utf8")) as JsonObject;
    const desc = stateTypes[file.includes("v1-state-") ? "v1" : "v2"];
    // 1.39 does not know verifyState and execState yet.
    const unknownThen = file.startsWith("20-") && desc === stateTypes.v2 ? { verifyState: null, execState: null } : {};
    expect(toGatewayJson(desc, fromGatewayJson(desc, recorded))).toEqual({ ...recorded, ...unknownThen });
  });
});

describe("--event-log-file", () => {
  it.each(["v1", "v2"] as const)("%s lines are the same messages as the stream's", (version) => {
    const scenario = "01-dev-success-3-artifacts-5-iterations";
    const desc = eventTypes[version];
    const logged = lines<JsonValue>(`${scenario}/event-log-file.${version}.ndjson`);
    const sent = messages(`${scenario}/grpc-${version}-events.grpc.ndjson`).map((bytes) => toGatewayJson(desc, bytes));
    expect(logged.map((json) => withDefaults(desc, json)).slice(0, sent.length)).toEqual(sent);
    expect(logged.length).toBeGreaterThanOrEqual(sent.length);
  });
});

describe("cases that no recording shows", () => {
  const event = messageType("tapedeck.v1.Event");
  const render = (desc: typeof event, json: JsonValue) => toGatewayJson(desc, fromGatewayJson(desc, json));

  it("prints 64-bit integers as strings", () => {
    expect(render(event, { ordinal: "18446744073709551615", part: 3 })).toMatchObject({
      ordinal: "18446744073709551615",
      frame_ordinal: "0",
      part: 3,
    });
  });

  it.each([
    ["2026-11-20T15:51:04Z", "2026-11-20T15:51:04Z"],
    ["2026-11-20T15:51:04.100Z", "2026-11-20T15:51:04.100Z"],
    ["2026-11-20T15:51:04.1000010Z", "2026-11-20T15:51:04.100001Z"],
    ["2026-11-20T15:51:04.000000001Z", "2026-11-20T15:51:04.000000001Z"],
    ["2026-11-20T16:51:04.5+01:00", "2026-11-20T15:51:04.500Z"],
  ])("prints %s as %s", (timestamp, printed) => {
    expect(render(eventTypes.v1, { timestamp })).toEqual({ timestamp: printed, event: null, entry: "" });
  });

  it("takes enums by name and number, prints unknown numbers, drops unknown names", () => {
    const rendered = (errCode: JsonValue) => render(messageType("proto.ActionableErr"), { errCode }).errCode;
    expect([rendered("BUILD_USER_ERROR"), rendered(104), rendered(104000), rendered("FROM_THE_FUTURE")]).toEqual([
      "BUILD_USER_ERROR",
      "BUILD_USER_ERROR",
      104000,
      "OK",
    ]);
  });

  it("prints an event without a type, or of a later type, as an empty object", () => {
    expect(render(eventTypes.v1, { event: {} })).toMatchObject({ event: {} });
    const field2999 = [0xba, 0xbb, 0x01, 0x00];
    expect(toGatewayJson(eventTypes.v1, Uint8Array.of(0x12, field2999.length, ...field2999))).toMatchObject({
      event: {},
    });
  });

  it("keeps any map key, in an order that does not depend on the sender", () => {
    const additional = JSON.parse('{"z":"1","__proto__":"2","a":"3"}') as JsonObject;
    const printed = JSON.stringify(render(messageType("proto.Metadata"), { additional }));
    expect(printed).toBe('{"build":null,"deploy":null,"test":null,"additional":{"__proto__":"2","a":"3","z":"1"}}');
  });

  it("takes both dialects of a name, and ignores unknown fields", () => {
    const log = { level: "STANDARD", message: "m", task_id: "Build-1", subtask_id: "web" };
    const camel = { level: 7, message: "m", taskId: "Build-1", subtaskId: "web", later: [1] };
    const desc = messageType("proto.v2.SkaffoldLogEvent");
    expect(render(desc, camel)).toEqual(log);
    expect(render(desc, log)).toEqual(log);
  });

  it("refuses two members of a oneof and values that do not fit", () => {
    expect(() => fromGatewayJson(eventTypes.v2, { metaEvent: {}, taskEvent: {} })).toThrow();
    expect(() => fromGatewayJson(eventTypes.v2, { timestamp: "yesterday" })).toThrow();
    expect(() => fromGatewayJson(eventTypes.v2, null)).toThrow();
  });

  it("shows text that is not UTF-8 with replacement characters, as the generated code does", () => {
    const entry = [0x1a, 5, 0x61, 0xff, 0xc3, 0xa9, 0xc3];
    expect(toGatewayJson(eventTypes.v1, Uint8Array.from(entry)).entry).toBe("a\ufffdé\ufffd");
    expect(LogEntry.decode(Uint8Array.from(entry)).entry).toBe("a\ufffdé\ufffd");
  });

  it("throws for bytes that are not a message", () => {
    expect(() => toGatewayJson(eventTypes.v1, Uint8Array.of(0x1a, 200))).toThrow();
  });
});
