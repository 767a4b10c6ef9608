import { join } from "node:path";
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { fromJson, type JsonObject, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { Validator } from "@seriousme/openapi-schema-validator";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { eventToJson } from "@tapedeck/shared/events/json";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { eventPosition } from "@tapedeck/shared/testing/positions";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  document,
  expectIs,
  type Parameter,
  type ParameterSchema,
  schemaOf,
  statsPaths,
} from "../stack/answer-schemas.ts";
import { type Stack, startStack } from "../stack/stack.ts";

const recording = loadRecording(
  join(
    import.meta.dirname,
    "../../packages/fakes/recordings",
    "skaffold",
    "10-status-check-port-forward-sync-app-logs",
  ),
);

const cleanup = new AsyncDisposableStack();
let stack: Stack;
/** A position of the log, and where the log ends. */
let [first, last] = ["", ""];

beforeAll(async () => {
  const fake = cleanup.use(await startFakeSkaffold({ recording }));
  stack = cleanup.use(await startStack({ skaffold: [{ address: fake.address }] }));
  await stack.connected();
  await fake.play();
  await stack.recorded(fake.played);
  const { items, position } = JSON.parse((await get("/api/v1/events?limit=1000")).body);
  [first, last] = [items[0].position, position];
});
afterAll(() => cleanup.disposeAsync());

const get = (path: string, accept = "application/json", method = "GET") => stack.httpCall(method, path, { accept });
const [json, ndjson, sse] = ["application/json", "application/x-ndjson", "text/event-stream"];
const cloudEvents = "application/cloudevents-batch+json";

describe("the document", () => {
  it("is valid OpenAPI 3.1 and contains everything that it refers to", async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(structuredClone(document));
    expect({ valid, errors, version: validator.version }).toEqual({ valid: true, errors: undefined, version: "3.1" });
    const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(
      ([, name]) => name,
    );
    expect(Object.keys(document.components.schemas)).toEqual(expect.arrayContaining(refs));
  });

  it("describes every parameter", () => {
    const all = Object.values(document.paths).flatMap((path) =>
      Object.values(path).flatMap(({ parameters = [] }) => parameters),
    );
    expect(all.length).toBeGreaterThan(50);
    expect(all.filter(({ description = "" }) => description.length < 5)).toEqual([]);
  });

  it("is what the gateway serves to programs", async () => {
    const { status, headers, body } = await get("/api/docs/openapi.json");
    expect([status, headers["content-type"]]).toEqual([200, "application/json; charset=utf-8"]);
    expect(JSON.parse(body)).toEqual(document);
  });

  it("is shown to people by a page that loads nothing from elsewhere", async () => {
    const { headers, body } = await get("/api/docs", "text/html");
    expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self';/);
    const needed = [...body.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, path = ""]) => path);
    expect(needed.length).toBeGreaterThan(4);
    for (const path of [...needed, "/api/docs/json"]) {
      expect({ path, status: (await get(path, "*/*")).status }).toEqual({ path, status: 200 });
    }
    expect(JSON.parse((await get("/api/docs/json")).body)).toEqual(document);
    for (const path of ["yaml", "static/more.js"]) {
      expect(JSON.parse((await get(`/api/docs/${path}`)).body)).toMatchObject({ error: { code: "not_found" } });
    }
  });
});

describe("parameters match their description", () => {
  const described = Object.entries(document.paths).flatMap(([path, { get }]) =>
    (get?.parameters ?? []).filter((one) => one.in === "query").map((one) => [path, one.name, one] as const),
  );
  /** The field that the error names, if not the parameter itself. */
  const wrongField = async (path: string, { name }: Parameter, value: string) => {
    const type = name === "speed" ? ndjson : json;
    const query = new URLSearchParams({ [name]: value });
    if (path === "/api/v1/stream") query.set("until", "now");
    if (name === "speed") query.set("after", "now");
    // A runner is one of a session, and a loop one of a runner.
    if (name === "runner" || name === "loop") query.set("session", "01M7XB1CJJ74KGYJT57DM4N80H");
    if (name === "loop") query.set("runner", "1");
    const { status, body } = await get(`${path}?${query}`, type);
    if (status !== 400) return undefined;
    const { field } = JSON.parse(body).error;
    return field.replace(/^filter\.(\w+)s$/, "$1") as string;
  };

  it.each(described)("%s: %s takes its valid values", async (path, _, parameter) => {
    for (const value of goodValues(parameter.schema)) {
      expect({ value, wrong: await wrongField(path, parameter, value) }).toEqual({ value, wrong: undefined });
    }
  });

  it.each(described.filter(([, , { schema }]) => badValues(schema).length > 0))(
    "%s: %s refuses its invalid values",
    async (path, name, parameter) => {
      for (const value of badValues(parameter.schema)) {
        expect({ value, wrong: await wrongField(path, parameter, value) }).toEqual({ value, wrong: name });
      }
    },
  );

  const calls = Object.entries(document.paths)
    .filter(([path]) => path.startsWith("/api/v1/"))
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => [method.toUpperCase(), path] as const));
  it.each(calls)("%s %s takes no undocumented parameter", async (method, path) => {
    const { status, body } = await get(`${path.replaceAll(/\{\w+\}/g, "none")}?colour=red`, json, method);
    expect([status, JSON.parse(body).error]).toMatchObject([400, { code: "invalid_argument", field: "colour" }]);
  });
});

describe("answers match the document", () => {
  it.each<[path: string, query: string]>([
    ["/api/v1/sources", ""],
    ["/api/v1/sessions", ""],
    ["/api/v1/operations", "limit=50"],
    ...statsPaths.map((path): [string, string] => [path, ""]),
    ["/api/v1/stats/builds", "group=artifact,developer,project,source,hour,day,week,label.branch&zone=Europe/Berlin"],
    ["/api/v1/stats/loops", "group=developer,project,source,hour,day,week,time,loop,label.branch&zone=Europe/Berlin"],
    ["/api/v1/stats/failures", "group=phase,errorCode,error,artifact,developer,loop"],
    ["/api/v1/stats/flakes", "group=artifact,developer,project,day"],
    ["/api/v1/compare", ""],
    ["/api/v1/compare", "left=alice/shop&right=alice/shop"],
    ["/api/v1/status", ""],
    ["/api/v1/state", ""],
    ["/api/v1/state", "at=FIRST"],
    ["/api/v1/state", "at=LAST"],
    ["/api/v1/events", "limit=20"],
    ["/api/v1/events", "last=20&original=true"],
    ["/healthz", ""],
    ["/readyz", ""],
  ])("%s?%s", async (path, query) => {
    const { status, headers, body } = await get(`${path}?${query.replace("FIRST", first).replace("LAST", last)}`);
    expect([status, headers["content-type"]]).toEqual([200, "application/json; charset=utf-8"]);
    const answer = JSON.parse(body);
    if ("items" in answer) expect(answer.items.length).toBeGreaterThan(0);
    expectIs(schemaOf(path, 200, json), answer);
    if (path !== "/api/v1/state") expect(numbersAsText(answer)).toEqual([]);
    if (path.startsWith("/api/v1")) expect(headers["tapedeck-position"]).toBe(answer.position);
  });

  it("every event of a recording, in every form", async () => {
    const lines = (await get("/api/v1/events?original=true", ndjson)).body
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const kinds = new Set(lines.flatMap(({ event }) => event?.kind ?? []));
    for (const kind of [
      "build.succeeded",
      "check.started",
      "resource.ready",
      "port.forwarded",
      "sync.succeeded",
      "mirror.received",
    ])
      expect(kinds).toContain(kind);
    for (const line of lines) expectIs(schemaOf("/api/v1/events", 200, ndjson), line);
    expect(numbersAsText(lines)).toEqual([]);

    const stream = (await get("/api/v1/stream?after=start&until=now&state=false", sse)).body;
    const data = [...stream.matchAll(/^data: (.*)$/gm)].map(([, text = ""]) => JSON.parse(text));
    expect(data).toHaveLength(lines.length);
    for (const message of data) expectIs(schemaOf("/api/v1/stream", 200, sse), message);

    const batch = JSON.parse((await get("/api/v1/events?limit=1000", cloudEvents)).body);
    expectIs(schemaOf("/api/v1/events", 200, cloudEvents), batch);
    expect(batch).toHaveLength(lines.length - 1);
  });

  it("state, marks and errors on streams", async () => {
    const lines = (await get(`/api/v1/stream?state=true&after=${first}&until=now`, ndjson)).body.trim().split("\n");
    const messages = lines.map((line) => JSON.parse(line));
    expect([messages[0].type, messages.at(-1).type]).toEqual(["state", "complete"]);
    for (const message of messages) expectIs("Message", message);
    expectIs("Message", { type: "caught_up", position: last });
    expectIs("Message", { type: "bookmark", position: last });
    expectIs("Message", { type: "error", error: { code: "internal", message: "internal error" } });
  });

  it.each([
    ["/api/v1/events", "after=soon", 400],
    ["/api/v1/state", "source=nobody/nothing", 404],
    ["/api/v1/events", "after=1100-zzzzzz", 409],
    ["/api/v1/state", "at=1100-zzzzzz", 409],
    ["/api/v1/stream", "after=FUTURE", 416],
    ["/api/v1/sources", "min_position=FUTURE", 416],
    ["/api/v1/tokens", "", 403],
    ["/api/v1/ws", "", 426],
  ])("%s?%s is an error with status %i", async (path, query, expected) => {
    const { status, body } = await get(
      `${path}?${query.replace("FUTURE", eventPosition(parsePosition(last)?.epoch ?? "", 999_999))}`,
    );
    expect(status).toBe(expected);
    expectIs(schemaOf(path, status, json), JSON.parse(body));
  });
});

describe("an event with every kind of detail matches the document", () => {
  const event = messageType("tapedeck.v1.Event");
  const details = event.oneofs.find(({ name }) => name === "detail")?.fields ?? [];

  it.each(details.map((field) => [field.name, field] as const))("%s", (_, field) => {
    const whole = {
      id: "s.v1.1",
      source: "a/b/c/skaffold",
      channel: "v1",
      ordinal: "1",
      frameOrdinal: "1",
      kind: "build.started",
    };
    for (const detail of [field.message && filled(field.message), {}]) {
      const bytes = toBinary(event, fromJson(event, { ...whole, [field.jsonName]: detail ?? {} }));
      const recorded = { offset: offsetOf(1), recordedAt: new Date(0), subject: "", event: Event.decode(bytes) };
      const json = JSON.parse(JSON.stringify(eventToJson(recorded, "e")));
      expectIs("Event", json);
      expectIs(field.message?.name ?? "", json.detail);
    }
  });
});

/** Texts of any form: values that were compared, and the upstream's names. */
const anyText = new Set(["value", "subtask", "subtaskId"]);

/** Fields whose text has digits alone. */
function numbersAsText(value: unknown, name = ""): readonly string[] {
  if (typeof value === "string") return /^-?\d+$/.test(value) && !anyText.has(name) ? [`${name}: ${value}`] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => numbersAsText(one, key));
}

/** The values that the description allows. */
function goodValues({ items, anyOf, ...schema }: ParameterSchema): string[] {
  const named = [
    ...(schema.enum ?? []),
    ...(schema.examples ?? []),
    ...(schema.const === undefined ? [] : [schema.const]),
  ];
  const bounds =
    schema.type === "integer"
      ? [schema.minimum, schema.maximum]
      : schema.type === "number"
        ? [0.5, schema.maximum]
        : [];
  return [
    ...named,
    ...bounds.map(String),
    ...(schema.type === "boolean" ? ["true", "false"] : []),
    ...(items === undefined ? [] : goodValues(items)),
    ...(anyOf ?? []).flatMap(goodValues),
  ];
}

function badValues({ items, anyOf, ...schema }: ParameterSchema): string[] {
  if (items !== undefined) return badValues(items);
  if (anyOf !== undefined) return ["", "fast", "0", "-1", "1001", "1e3", "Infinity", "0x10"];
  if (schema.type === "integer") return [(schema.minimum ?? 0) - 1, (schema.maximum ?? 0) + 1, 1.5, ""].map(String);
  if (schema.type === "boolean") return ["yes", "1", ""];
  return schema.enum === undefined ? [] : ["fine"];
}

/** Sets every field; lists and maps get an entry. */
function filled({ fields }: DescMessage): JsonObject {
  return Object.fromEntries(fields.map((field) => [field.jsonName, filledField(field)]));
}

function filledField(field: DescField): JsonValue {
  const value = filledValue(field);
  if (field.fieldKind === "list") return [value];
  return field.fieldKind === "map" ? { some_key: value } : value;
}

function filledValue({ message, scalar }: Pick<DescField, "message" | "scalar">): JsonValue {
  if (message?.typeName === "google.protobuf.Timestamp") return "2026-01-31T12:00:00.000000001Z";
  if (message !== undefined) return filled(message);
  switch (scalar) {
    case 8:
      return true;
    case 9:
      return "text";
    case 12:
      return "AQID";
    default:
      return 7;
  }
}
