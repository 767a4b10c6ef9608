import { create, type DescField, type DescMessage, ScalarType, toJson } from "@bufbuild/protobuf";
import { TimestampSchema, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import fc from "fast-check";
import { expect, it } from "vitest";
import { asBuffer } from "../as-buffer.ts";
import { messageType } from "../descriptors/registry.ts";
import type { RecordedEvent } from "../log/log.ts";
import { offsetOf } from "../log/offset.ts";
import { formatPosition } from "../log/position.ts";
import { writeEventJson } from "./json.ts";
import { outcomeNames, timeSourceNames } from "./names.ts";

/** Any value of a message as generated code has it, of all the fields that its description names. */
function anyMessage(desc: DescMessage): fc.Arbitrary<object> {
  if (desc.typeName === "google.protobuf.Timestamp") return anyTime;
  const plainFields = desc.fields.filter((field) => field.oneof === undefined);
  const fields = Object.fromEntries(plainFields.map((field) => [field.name, anyField(field)]));
  const oneofs = Object.fromEntries(
    desc.oneofs
      .filter(({ fields: [first] }) => first?.proto.proto3Optional !== true)
      .map((oneof) => [oneof.name, fc.option(fc.oneof(...oneof.fields.map(anyCase)), { nil: undefined })]),
  );
  const optional = Object.fromEntries(
    desc.oneofs
      .filter(({ fields: [first] }) => first?.proto.proto3Optional === true)
      .flatMap(({ fields: [field] }) => (field ? [[field.name, fc.option(anyValue(field), { nil: undefined })]] : [])),
  );
  return fc.record({ ...fields, ...optional, ...oneofs });
}

function anyCase(field: DescField): fc.Arbitrary<object> {
  return anyValue(field).map((value) => ({ $case: field.name, value }));
}

function anyField(field: DescField): fc.Arbitrary<unknown> {
  if (field.fieldKind === "message") return fc.option(anyValue(field), { nil: undefined });
  return anyValue(field);
}

function anyValue(field: DescField): fc.Arbitrary<unknown> {
  if (field.fieldKind === "message") return anyMessage(field.message);
  if (field.fieldKind === "enum") return fc.nat(3);
  if (field.fieldKind === "map") return fc.dictionary(anyText, anyOf(field), { maxKeys: 3 });
  if (field.fieldKind === "list") return fc.array(anyOf(field), { maxLength: 3 });
  return anyScalar(field.scalar);
}

function anyOf(field: {
  readonly scalar?: ScalarType | undefined;
  readonly message?: DescMessage | undefined;
}): fc.Arbitrary<unknown> {
  return field.message === undefined ? anyScalar(field.scalar ?? ScalarType.STRING) : anyMessage(field.message);
}

const anyText = fc.string({ unit: fc.constantFrom(...'az 09_/"\\\n\u0000\u007f\u2028é😀', "\ud800"), maxLength: 12 });
const anyTime = fc.record({
  seconds: fc.oneof(
    fc.bigInt(-62_135_596_800n, 253_402_300_799n),
    // Near each other, as the times of an event are.
    fc.bigInt(1_795_194_000n, 1_795_194_200n),
  ),
  nanos: fc.oneof(fc.constantFrom(0, 1, 1_000, 120_000_000, 999_999_999), fc.nat(999_999_999)),
});

function anyScalar(type: ScalarType): fc.Arbitrary<unknown> {
  switch (type) {
    case ScalarType.STRING:
      return anyText;
    case ScalarType.BYTES:
      return fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes));
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.UINT64:
    case ScalarType.INT64:
      return fc.bigInt(0n, 2n ** 63n - 1n);
    default:
      return fc.nat();
  }
}

const anyEvent = anyMessage(messageType("tapedeck.v1.Event")) as fc.Arbitrary<Event>;

it("any event is written as JSON.stringify writes its objects", () => {
  const cases = new Set<string>();
  const property = fc.property(
    anyEvent,
    fc.date({ noInvalidDate: true, min: new Date("0001-01-01"), max: new Date("9999-12-31") }),
    fc.boolean(),
    (event, recordedAt, original) => {
      cases.add(event.detail?.$case ?? "");
      const recorded: RecordedEvent = { offset: offsetOf(10_482, 7), recordedAt, subject: "", event };
      expect(writeEventJson(recorded, "t3k9x2", { original })).toBe(
        JSON.stringify(slowly(recorded, "t3k9x2", { original })),
      );
    },
  );
  fc.assert(property, { numRuns: 2_000 });
  const details = messageType("tapedeck.v1.Event").oneofs[0]?.fields.map(({ name }) => name) ?? [];
  expect([...cases].sort()).toEqual(["", ...details].sort());
});

type WireTime = { readonly seconds: bigint; readonly nanos: number };

/** The same, slowly: an object of each message, its times by the runtime of Protocol Buffers, and JSON.stringify. */
function slowly({ offset, recordedAt, event }: RecordedEvent, epoch: string, options: { original?: boolean } = {}) {
  return {
    position: formatPosition({ epoch, offset }),
    recordedAt: timeToJson(timestampFromDate(recordedAt)),
    id: event.id,
    source: event.source,
    ...(event.session !== "" && { session: event.session }),
    channel: event.channel,
    ordinal: exact(event.ordinal),
    frameOrdinal: exact(event.frame_ordinal),
    part: event.part,
    kind: event.kind,
    ...(event.subject !== "" && { subject: event.subject }),
    ...(event.outcome !== 0 && { outcome: outcomeNames[event.outcome] }),
    ...(event.error !== undefined && {
      error: { code: event.error.code, message: event.error.message, suggestions: event.error.suggestions },
    }),
    summary: event.summary,
    ...(event.occurred_at !== undefined && { occurredAt: timeToJson(event.occurred_at) }),
    ...(event.time_source !== 0 && { timeSource: timeSourceNames[event.time_source] }),
    ...(event.not_before !== undefined && { notBefore: timeToJson(event.not_before) }),
    ...(event.observed_at !== undefined && { observedAt: timeToJson(event.observed_at) }),
    ...(event.operation !== undefined && { operation: plain(event.operation) }),
    ...(event.inferred && { inferred: true }),
    ...(event.injected && { injected: true }),
    ...(event.redacted > 0 && { redacted: event.redacted }),
    ...(event.detail !== undefined && { detail: plain(event.detail.value) }),
    ...(options.original === true && event.original !== undefined && { original: originalToJson(event.original) }),
  };
}

function originalToJson({ type, bytes, size }: NonNullable<Event["original"]>) {
  return { type, size: exact(size), ...(bytes.length > 0 || size === 0n ? { bytes: base64(bytes) } : {}) };
}

/** A number with all its digits, as JSON.stringify takes it. */
function exact(number: bigint): unknown {
  return (JSON as unknown as { readonly rawJSON: (text: string) => unknown }).rawJSON(String(number));
}

function timeToJson({ seconds, nanos }: WireTime): string {
  return toJson(TimestampSchema, create(TimestampSchema, { seconds, nanos }));
}

/** A detail message: names in lowerCamelCase, times and bytes as text. */
function plain(value: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]) => {
      if (name === "_unknownFields" || field === undefined) return [];
      return [[camel(name), plainValue(name, field)]];
    }),
  );
}

/** Maps whose keys are user data and stay as they are. */
const maps: ReadonlySet<string> = new Set(["labels", "states", "ports", "dropped"]);

function plainValue(name: string, field: unknown): unknown {
  if (typeof field === "bigint") return exact(field);
  if (field instanceof Uint8Array) return base64(field);
  if (Array.isArray(field)) return field.map((item) => plainValue(name, item));
  if (typeof field !== "object" || field === null) return field;
  if (isTime(field)) return timeToJson(field);
  if (maps.has(name)) return Object.fromEntries(Object.entries(field).map(([k, v]) => [k, plainValue("", v)]));
  return plain(field);
}

function isTime(field: object): field is WireTime {
  return "seconds" in field && "nanos" in field && typeof field.seconds === "bigint";
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function base64(bytes: Uint8Array): string {
  return asBuffer(bytes).toString("base64");
}
