import { existsSync, readFileSync } from "node:fs";
import { type DescMessage, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { registry } from "@tapedeck/shared/descriptors/registry";

/** The values of a file with one JSON value per line. Throws if it can't be read. */
export function readJsonLines<T>(file: string): T[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T);
}

/** Like `readJsonLines`, but a file that does not exist has no values. */
export function readOptionalJsonLines<T>(file: string): T[] {
  return existsSync(file) ? readJsonLines<T>(file) : [];
}

/** A message from proto3 JSON with the original field names. Throws for a name that the message does not have. */
export function messageFromJson(type: DescMessage, json: JsonObject): Buffer {
  return Buffer.from(toBinary(type, fromJson(type, json, { registry })));
}
