import {
  type DescField,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { ownValue } from "../own-value.ts";
import { isJsonObject } from "./json-object.ts";
import { registry } from "./registry.ts";

/**
 * A message as Skaffold's HTTP server (grpc-gateway v2) prints it (docs/upstreams/skaffold.md#http-encoding): names as
 * in the .proto file in the order of the file, defaults printed, unset messages `null`, only the set member of a oneof,
 * enums as names (unknown numbers as numbers), 64-bit integers as strings, bytes as base64, timestamps in UTC with 0,
 * 3, 6 or 9 decimals, map keys as sorted strings. Fields that the description does not know are left out; text that is
 * not UTF-8 has U+FFFD in it. Throws if the bytes are no message, or a timestamp lies outside the years 1 to 9999.
 */
export function toGatewayJson(desc: DescMessage, bytes: Uint8Array): JsonObject {
  const json = toJson(desc, fromBinary(desc, bytes), { alwaysEmitImplicit: true, useProtoFieldName: true, registry });
  if (!isJsonObject(json)) throw new TypeError(`${desc.typeName} has no object form in JSON`);
  return withUnset(desc, json);
}

/**
 * The bytes of a message given as JSON in either dialect: HTTP (`task_id`, defaults printed) or `--event-log-file`
 * (`taskId`, defaults left out), without the `{"result": …}` around it. Unknown fields and unknown enum names are
 * ignored, as the gateway does; enums may be numbers. Fields are written in the order of their description.
 * Throws if a value does not fit its field, or two members of a oneof are set.
 */
export function fromGatewayJson(desc: DescMessage, json: JsonValue): Uint8Array {
  return toBinary(desc, fromJson(desc, json, { ignoreUnknownFields: true, registry }));
}

/** JSON in either dialect, or of a server that leaves defaults out (Skaffold before 1.33), in the form of `toGatewayJson`. */
export function withDefaults(desc: DescMessage, json: JsonValue): JsonObject {
  return toGatewayJson(desc, fromGatewayJson(desc, json));
}

/** Adds what protobuf-es has no switch for: `null` for unset messages, and an order that does not depend on the sender. */
function withUnset(desc: DescMessage, json: JsonObject): JsonObject {
  const out = new Map<string, JsonValue>();
  for (const field of desc.fields) {
    const value = ownValue(json, field.name);
    if (value !== undefined) out.set(field.name, withUnsetInField(field, value));
    else if (isNullWhenUnset(field)) out.set(field.name, null);
  }
  return Object.fromEntries(out);
}

function withUnsetInField(field: DescField, value: JsonValue): JsonValue {
  if (field.fieldKind === "map") return isJsonObject(value) ? withUnsetInMap(field, value) : value;
  const message = field.message;
  if (message === undefined) return value;
  return Array.isArray(value)
    ? value.map((item) => withUnsetInMessage(message, item))
    : withUnsetInMessage(message, value);
}

function withUnsetInMap(field: DescField & { fieldKind: "map" }, map: JsonObject): JsonObject {
  const message = field.message;
  const entries = Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
  // fromEntries and not assignment: a key may be "__proto__".
  return Object.fromEntries(message ? entries.map(([key, item]) => [key, withUnsetInMessage(message, item)]) : entries);
}

function withUnsetInMessage(desc: DescMessage, value: JsonValue): JsonValue {
  const isWellKnown = desc.typeName.startsWith("google.protobuf.");
  return isWellKnown || !isJsonObject(value) ? value : withUnset(desc, value);
}

function isNullWhenUnset(field: DescField): boolean {
  return field.fieldKind === "message" && field.oneof === undefined && !field.proto.proto3Optional;
}
