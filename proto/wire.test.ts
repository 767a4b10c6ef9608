import { readFileSync } from "node:fs";
import {
  createFileRegistry,
  type DescField,
  type DescMessage,
  type FileRegistry,
  fromBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";

const ours = readRegistry("gen/descriptors.binpb");

/** Taken from the real upstreams, by service; see the READMEs beside them. */
const theirs = {
  "proto.SkaffoldService": readRegistry("../packages/fakes/recordings/skaffold/descriptor-v1.binpb"),
  "proto.v2.SkaffoldV2Service": readRegistry("../packages/fakes/recordings/skaffold/descriptor-v2.binpb"),
  "v1alpha.PublicAPI": readRegistry("../packages/fakes/recordings/rkt/descriptor.binpb"),
  "hashicorp.vagrant.Vagrant": readRegistry("../packages/fakes/recordings/vagrant/descriptor.binpb"),
};

/** Packages of which we describe only what fields of the others lead to, and what that is nested in, emptied. */
const borrowed: ReadonlySet<string> = new Set(["hashicorp.vagrant.sdk", "protostructure"]);

/** What Vagrant v2.4 has beyond the descriptor, which is that of v2.3.7. It reserves less, too. */
const added: Readonly<Record<string, readonly string[]>> = {
  "hashicorp.vagrant.Job": [
    "56 init_basis in operation: hashicorp.vagrant.Job.InitBasisOp",
    "57 init_project in operation: hashicorp.vagrant.Job.InitProjectOp",
  ],
  "hashicorp.vagrant.Job.Result": [
    "6 basis alone: hashicorp.vagrant.Job.InitBasisResult",
    "7 project alone: hashicorp.vagrant.Job.InitProjectResult",
  ],
  "hashicorp.vagrant.Job.InitBasisOp": [],
  "hashicorp.vagrant.Job.InitBasisResult": ["1 basis alone: hashicorp.vagrant.sdk.Ref.Basis"],
  "hashicorp.vagrant.Job.InitProjectOp": [],
  "hashicorp.vagrant.Job.InitProjectResult": ["1 project alone: hashicorp.vagrant.sdk.Ref.Project"],
};
const reservedNow: Readonly<Record<string, readonly string[]>> = { "hashicorp.vagrant.Job": ["58 to 80"] };

function readRegistry(path: string): FileRegistry {
  const bytes = readFileSync(new URL(path, import.meta.url));
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
}

/** All that can be seen on the wire, binary or JSON, by full name. */
function wire(registry: FileRegistry, packages: ReadonlySet<string>): Record<string, object> {
  const described: Record<string, object> = {};
  const reached = reachedFrom(registry, packages);
  for (const type of registry) {
    const { package: name } = type.file.proto;
    if (type.kind === "extension" || !packages.has(name)) continue;
    const isReached = !borrowed.has(name) || reached.has(type.typeName);
    if (!isReached && ![...reached].some((each) => each.startsWith(`${type.typeName}.`))) continue;
    if (type.kind === "enum") {
      const values = type.values.toSorted((a, b) => a.number - b.number);
      described[type.typeName] = values.map((value) => `${value.name} = ${value.number}, open: ${type.open}`);
    } else if (type.kind === "message") {
      described[type.typeName] = isReached ? messageOnWire(type) : {};
    } else {
      described[type.typeName] = type.methods.map(
        (method) => `${method.name}: ${method.methodKind} ${method.input.typeName} -> ${method.output.typeName}`,
      );
    }
  }
  return described;
}

function messageOnWire({ fields, oneofs, proto }: DescMessage) {
  return {
    // In the order of the file, which is the order in JSON.
    fields: fields.filter((field) => !isAdded(field)).map(fieldOnWire),
    oneofs: oneofs.map((oneof) => oneof.name),
    reserved: proto.reservedRange.map((range) => `${range.start} to ${range.end}`),
  };
}

function isAdded(field: DescField): boolean {
  return added[field.parent.typeName]?.includes(briefly(field)) ?? false;
}

function briefly({ number, name, oneof, message }: DescField): string {
  return `${number} ${name} ${oneof ? `in ${oneof.name}` : "alone"}: ${message?.typeName}`;
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

/** Names of what the fields of messages lead to, whatever package it is in; not from borrowed ones at first. */
function reachedFrom(registry: FileRegistry, packages: ReadonlySet<string>): ReadonlySet<string> {
  const reached = new Set<string>();
  const follow = (type: DescMessage): void => {
    for (const { message, enum: values } of type.fields) {
      if (values !== undefined) reached.add(values.typeName);
      if (message === undefined || reached.has(message.typeName)) continue;
      reached.add(message.typeName);
      follow(message);
    }
  };
  for (const type of registry) {
    const { package: name } = type.file.proto;
    if (type.kind === "message" && packages.has(name) && !borrowed.has(name)) follow(type);
  }
  return reached;
}

describe.each(Object.entries(theirs))("%s", (service, upstream) => {
  const named = [...upstream.files].map((file) => file.proto.package);
  const packages = new Set(named.filter((name) => !name.startsWith("google.")));
  const expected = wire(upstream, packages);
  const actual = wire(ours, packages);

  it("has the same messages, enums and methods on both sides", () => {
    expect(Object.keys(expected)).toContain(service);
    const additions = Object.keys(added).filter((name) => actual[name] !== undefined);
    const both = new Set([...Object.keys(expected), ...additions]);
    expect(Object.keys(actual).toSorted()).toEqual([...both].toSorted());
  });

  it.each(Object.keys(expected))("%s is the same", (name) => {
    const reserved = reservedNow[name];
    expect(actual[name]).toEqual(reserved === undefined ? expected[name] : { ...expected[name], reserved });
  });
});

it.each(Object.entries(added))("%s has what was added, and the upstream's descriptor has not", (name, fields) => {
  const had = theirs["hashicorp.vagrant.Vagrant"].getMessage(name)?.fields.map(briefly) ?? [];
  expect(had.filter((field) => fields.includes(field))).toEqual([]);
  expect(ours.getMessage(name)?.fields.map(briefly)).toEqual(expect.arrayContaining([...fields]));
});

it("describes no more of what is borrowed than what is reached", () => {
  const reached = reachedFrom(ours, new Set(["hashicorp.vagrant"]));
  const holds = (outer: string) => [...reached].some((name) => name.startsWith(`${outer}.`));
  for (const type of ours) {
    if (type.kind !== "message" || !borrowed.has(type.file.proto.package) || reached.has(type.typeName)) continue;
    expect({ [type.typeName]: { holds: holds(type.typeName), fields: type.fields.length } }).toEqual({
      [type.typeName]: { holds: true, fields: 0 },
    });
  }
});
