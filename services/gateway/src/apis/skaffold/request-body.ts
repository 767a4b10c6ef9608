import { type DescField, type DescMessage, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { parseRfc3339 } from "@tapedeck/shared/time/rfc3339";
import { type Node, parseTree } from "jsonc-parser";
import { BadBodyError } from "./errors.ts";
import { scanFirstValue } from "./go-json-scanner.ts";

/**
 * The message in a request body, read as Skaffold's grpc-gateway reads it (docs/upstreams/skaffold.md#http-encoding): empty is the empty
 * message, only the first JSON value counts, unknown fields are ignored, both spellings of names are accepted.
 */
export function readRequestBody(desc: DescMessage, body: string): Uint8Array {
  const scanned = scanFirstValue(body);
  if (scanned === "empty") return fromGatewayJson(desc, {});
  if ("error" in scanned) throw new BadBodyError(scanned.error);
  const text = body.slice(scanned.start, scanned.end);
  const tree = parseTree(text);
  if (tree === undefined) throw new BadBodyError("unexpected EOF");
  checkMessage(desc, tree, text);
  try {
    return fromGatewayJson(desc, JSON.parse(text) as JsonValue);
  } catch (cause) {
    throw new BadBodyError(`proto: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** Refuses here what protobuf-es would word differently from Go. */
function checkMessage(desc: DescMessage, node: Node, text: string): void {
  if (desc.typeName === "google.protobuf.Timestamp") {
    checkTimestamp(node, text);
    return;
  }
  if (node.type !== "object") {
    throw new BadBodyError(
      `proto: syntax error ${lineAndColumn(node, text)}: unexpected token ${firstToken(node, text)}`,
    );
  }
  const taken = new Set<string>();
  for (const property of node.children ?? []) {
    const [key, value] = property.children ?? [];
    if (key === undefined || value === undefined) continue;
    const field = desc.fields.find((f) => f.name === key.value || f.jsonName === key.value);
    if (field === undefined || value.type === "null") continue;
    if (field.oneof !== undefined) {
      if (taken.has(field.oneof.name)) {
        const oneof = `${desc.typeName}.${field.oneof.name}`;
        throw new BadBodyError(
          `proto: ${lineAndColumn(key, text)}: error parsing ${raw(key, text)}, oneof ${oneof} is already set`,
        );
      }
      taken.add(field.oneof.name);
    }
    checkField(field, value, text);
  }
}

function checkField(field: DescField, node: Node, text: string): void {
  if (field.fieldKind === "list") {
    if (node.type !== "array") throw unexpectedToken(node, text);
    for (const item of node.children ?? []) checkSingular(field, item, text);
  } else if (field.fieldKind === "map") {
    if (node.type !== "object") throw unexpectedToken(node, text);
    for (const entry of node.children ?? []) {
      const value = entry.children?.[1];
      if (value !== undefined) checkSingular(field, value, text);
    }
  } else checkSingular(field, node, text);
}

function checkSingular(field: DescField, node: Node, text: string): void {
  if (field.message !== undefined) {
    checkMessage(field.message, node, text);
    return;
  }
  if (field.enum !== undefined) {
    if (node.type !== "string" && node.type !== "number") throw invalidValue("enum", field, node, text);
    return;
  }
  if (field.scalar === undefined) return;
  const kind = (ScalarType[field.scalar] ?? "").toLowerCase();
  if (!fits(field.scalar, node)) throw invalidValue(kind, field, node, text);
}

function fits(scalar: ScalarType, node: Node): boolean {
  switch (scalar) {
    case ScalarType.BOOL:
      return node.type === "boolean";
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return node.type === "string";
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return (
        node.type === "number" || (node.type === "string" && node.value !== "" && !Number.isNaN(Number(node.value)))
      );
    default:
      return fitsInteger(scalar, node);
  }
}

function fitsInteger(scalar: ScalarType, node: Node): boolean {
  if (node.type !== "number" && node.type !== "string") return false;
  if (node.type === "string" && !/^-?[0-9]+$/.test(String(node.value))) return false;
  const value = Number(node.value);
  if (!Number.isInteger(value)) return false;
  const unsigned = scalar === ScalarType.UINT32 || scalar === ScalarType.FIXED32;
  const signed = scalar === ScalarType.INT32 || scalar === ScalarType.SINT32 || scalar === ScalarType.SFIXED32;
  if (unsigned) return value >= 0 && value <= 0xffffffff;
  return !signed || (value >= -0x80000000 && value <= 0x7fffffff);
}

/** Go wants seconds, and capital letters. */
const goTime = /^[^T]+T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

function checkTimestamp(node: Node, text: string): void {
  if (node.type !== "string") throw unexpectedToken(node, text);
  const time = String(node.value);
  if (!goTime.test(time) || parseRfc3339(time) === undefined) {
    throw new BadBodyError(
      `proto: ${lineAndColumn(node, text)}: invalid google.protobuf.Timestamp value ${raw(node, text)}`,
    );
  }
}

function invalidValue(kind: string, field: DescField, node: Node, text: string): BadBodyError {
  return new BadBodyError(
    `proto: ${lineAndColumn(node, text)}: invalid value for ${kind} field ${field.jsonName}: ${firstToken(node, text)}`,
  );
}

function unexpectedToken(node: Node, text: string): BadBodyError {
  return new BadBodyError(
    `proto: syntax error ${lineAndColumn(node, text)}: unexpected token ${firstToken(node, text)}`,
  );
}

function firstToken(node: Node, text: string): string {
  return node.type === "object" ? "{" : node.type === "array" ? "[" : raw(node, text);
}

function raw(node: Node, text: string): string {
  return text.slice(node.offset, node.offset + node.length);
}

/** "(line 1:10)": columns count characters from 1. */
function lineAndColumn(node: Node, text: string): string {
  const before = text.slice(0, node.offset).split("\n");
  return `(line ${before.length}:${[...(before.at(-1) ?? "")].length + 1})`;
}
