import { type DescEnum, fromBinary, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  isReflectList,
  isReflectMap,
  isReflectMessage,
  type ReflectMessage,
  reflect,
} from "@bufbuild/protobuf/reflect";
import { Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { numberIn } from "@tapedeck/shared/descriptors/message-fields";
import { messageType, registry } from "@tapedeck/shared/descriptors/registry";

/** Messages of tens of KB that are of no use in a state. Vagrant's API has them. */
const leftOut: ReadonlySet<string> = new Set([
  "hashicorp.vagrant.Vagrantfile",
  "hashicorp.vagrant.Job.InitResult",
  "hashicorp.vagrant.sdk.Args.ConfigData",
]);

/** How many finished jobs the state has: the newest. */
const maxFinishedJobs = 20;

/** In hashicorp.vagrant.Job. */
const stateField = 100;
const finishedStates: ReadonlySet<number> = new Set([Job_State.SUCCESS, Job_State.ERROR]);

/**
 * State of a Vagrant server as JSON, with the names of the .proto files and without fields that are zero. `version` is null
 * until the server has reported it. An Any has `@type` and its fields, or `value` in base64 when its type is unknown; so
 * has a message whose bytes are not of its type. Each list is in Vagrant's order.
 */
export function vagrantStateJson(collections: readonly (readonly Uint8Array[])[]): object {
  const [[version] = [], targets = [], projects = [], bases = [], boxes = [], runners = [], jobs = []] = collections;
  const list = (type: string, items: readonly Uint8Array[]) => items.map((item) => toStateJson(type, item));
  return {
    version: version === undefined ? null : (toStateJson("GetVersionInfoResponse", version).info ?? null),
    targets: list("Target", targets),
    projects: list("Project", projects),
    bases: list("Basis", bases),
    boxes: list("Box", boxes),
    runners: list("Runner", runners),
    jobs: list("Job", visibleJobs(jobs)),
  };
}

/** The unfinished jobs, and the newest finished ones. */
function visibleJobs(jobs: readonly Uint8Array[]): readonly Uint8Array[] {
  const finished = jobs.filter((job) => finishedStates.has(numberIn(job, stateField)));
  const old = new Set(finished.slice(0, Math.max(0, finished.length - maxFinishedJobs)));
  return jobs.filter((job) => !old.has(job));
}

/** `type`: in the package hashicorp.vagrant. */
function toStateJson(type: string, bytes: Uint8Array): JsonObject {
  const desc = messageType(`hashicorp.vagrant.${type}`);
  try {
    return fieldsOf(reflect(desc, fromBinary(desc, bytes)));
  } catch {
    return { "@type": desc.typeName, value: Buffer.from(bytes).toString("base64") };
  }
}

function fieldsOf(message: ReflectMessage): JsonObject {
  const fields = message.fields.filter((field) => message.isSet(field) && !leftOut.has(field.message?.typeName ?? ""));
  return Object.fromEntries(fields.map((field) => [field.name, jsonOf(message.get(field), field.enum)]));
}

function jsonOf(value: unknown, names: DescEnum | undefined): JsonValue {
  if (isReflectMessage(value)) return messageOf(value);
  if (isReflectList(value)) return [...value].map((item) => jsonOf(item, names));
  if (isReflectMap(value)) {
    return Object.fromEntries([...value].map(([key, item]) => [String(key), jsonOf(item, names)]));
  }
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (typeof value === "number" && names !== undefined) return names.value[value]?.name ?? value;
  return typeof value === "bigint" ? String(value) : (value as string | number | boolean);
}

function messageOf(message: ReflectMessage): JsonValue {
  switch (message.desc.typeName) {
    case "google.protobuf.Any":
      return anyOf(message);
    case "google.protobuf.Timestamp":
    case "google.protobuf.Struct":
      return wellKnown(message);
    default:
      return fieldsOf(message);
  }
}

/** A value without a canonical form, such as a time after the year 9999, is rendered by its fields. */
function wellKnown(message: ReflectMessage): JsonValue {
  try {
    return toJson(message.desc, message.message);
  } catch {
    return fieldsOf(message);
  }
}

function anyOf({ message }: ReflectMessage): JsonObject {
  const { typeUrl = "", value = new Uint8Array() } = message as { typeUrl?: string; value?: Uint8Array };
  const desc = registry.getMessage(typeUrl.slice(typeUrl.lastIndexOf("/") + 1));
  try {
    if (desc !== undefined) return { "@type": typeUrl, ...fieldsOf(reflect(desc, fromBinary(desc, value))) };
  } catch {} // the bytes are not of the declared type
  return { "@type": typeUrl, value: Buffer.from(value).toString("base64") };
}
