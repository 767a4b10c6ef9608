import { readFileSync } from "node:fs";
import { createFileRegistry, type DescField, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";

const ours = readRegistry("gen/descriptors.binpb");

/** Taken from the real upstreams, by service; see the READMEs beside them. */
const theirs = {
  "proto.SkaffoldService": readRegistry("../test/fixtures/skaffold/descriptor-v1.binpb"),
  "proto.v2.SkaffoldV2Service": readRegistry("../test/fixtures/skaffold/descriptor-v2.binpb"),
  "v1alpha.PublicAPI": readRegistry("../test/fixtures/rkt/descriptor.binpb"),
};

function readRegistry(path: string): FileRegistry {
  const bytes = readFileSync(new URL(path, import.meta.url));
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
}

/** All that can be seen on the wire, binary or JSON, by full name. */
function wire(registry: FileRegistry, packages: ReadonlySet<string>): Record<string, unknown> {
  const described: Record<string, unknown> = {};
  for (const type of registry) {
    if (type.kind === "extension" || !packages.has(type.file.proto.package)) continue;
    if (type.kind === "enum") {
      const values = type.values.toSorted((a, b) => a.number - b.number);
      described[type.typeName] = { open: type.open, values: values.map((value) => `${value.name} = ${value.number}`) };
    } else if (type.kind === "message") {
      described[type.typeName] = {
        // In the order of the file, which is the order in JSON.
        fields: type.fields.map(fieldOnWire),
        oneofs: type.oneofs.map((oneof) => oneof.name),
        reserved: type.proto.reservedRange.map((range) => `${range.start} to ${range.end}`),
      };
    } else {
      described[type.typeName] = type.methods.map(
        (method) => `${method.name}: ${method.methodKind} ${method.input.typeName} -> ${method.output.typeName}`,
      );
    }
  }
  return described;
}

function fieldOnWire(field: DescField): string {
  const { number, name, jsonName, type, typeName, label, proto3Optional, oneofIndex } = field.proto;
  const oneof = field.oneof ? `in ${field.oneof.name}` : "alone";
  const packed = field.fieldKind === "list" && field.packed ? "packed" : "";
  const map = field.fieldKind === "map" ? `map by ${field.mapKey} of ${field.mapKind} ${mapValue(field)}` : "";
  return [number, name, jsonName, type, typeName, label, proto3Optional, oneofIndex, oneof, packed, map].join(" ");
}

function mapValue(field: DescField & { fieldKind: "map" }): string {
  return field.message?.typeName ?? field.enum?.typeName ?? `scalar ${field.scalar}`;
}

describe.each(Object.entries(theirs))("%s", (service, upstream) => {
  const named = [...upstream.files].map((file) => file.proto.package);
  const packages = new Set(named.filter((name) => !name.startsWith("google.")));
  const expected = wire(upstream, packages);
  const actual = wire(ours, packages);

  it("has the same messages, enums and methods on both sides", () => {
    expect(Object.keys(expected)).toContain(service);
    expect(Object.keys(actual).toSorted()).toEqual(Object.keys(expected).toSorted());
  });

  it.each(Object.keys(expected))("%s is the same", (name) => {
    expect(actual[name]).toEqual(expected[name]);
  });
});
