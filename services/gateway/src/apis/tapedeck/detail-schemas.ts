import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { messageType } from "@tapedeck/shared/descriptors/registry";

export type JsonSchema = { readonly [keyword: string]: unknown };

const text = { type: "string" };
const whole = { type: "integer" };

/**
 * JSON schemas of an event's `detail`, by the name of the message in event.proto, in the form that `eventToJson` writes. A
 * field is optional only when `eventToJson` omits it while it is not set.
 */
export function detailSchemas(): Readonly<Record<string, JsonSchema>> {
  const detail = messageType("tapedeck.v1.Event").oneofs.find(({ name }) => name === "detail");
  const messages = (detail?.fields ?? []).flatMap(({ message }) => (message === undefined ? [] : [message]));
  return Object.fromEntries(messages.map((message) => [message.name, messageSchema(message)]));
}

function messageSchema({ fields }: DescMessage): JsonSchema {
  const required = fields.filter((field) => !isOptional(field)).map(({ jsonName }) => jsonName);
  return {
    type: "object",
    properties: Object.fromEntries(fields.map((field) => [field.jsonName, fieldSchema(field)])),
    ...(required.length > 0 && { required }),
  };
}

function isOptional(field: DescField): boolean {
  return field.fieldKind === "message" || field.proto.proto3Optional;
}

function fieldSchema(field: DescField): JsonSchema {
  switch (field.fieldKind) {
    case "list":
      return { type: "array", items: valueSchema(field) };
    case "map":
      return { type: "object", additionalProperties: valueSchema(field) };
    default:
      return valueSchema(field);
  }
}

/** The schema of a field, or of an item of a list or map. */
function valueSchema({ message, scalar }: Pick<DescField, "message" | "scalar">): JsonSchema {
  if (message?.typeName === "google.protobuf.Timestamp") return { type: "string", format: "date-time" };
  if (message !== undefined) return messageSchema(message);
  switch (scalar) {
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    case ScalarType.STRING:
      return text;
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return { type: "number" };
    default:
      return whole;
  }
}
