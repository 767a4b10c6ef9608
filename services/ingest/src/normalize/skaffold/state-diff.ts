import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";

const stateTypes: ReadonlyMap<string, ReturnType<typeof messageType>> = new Map([
  ["v1", messageType("proto.State")],
  ["v2", messageType("proto.v2.State")],
]);

/**
 * Whether two states differ in what events do not tell: auto flags, names of artifacts, metadata. Statuses come from
 * events: they are compared only with `whole`. The order of lists in metadata differs from process to process and from copy to copy: compared as sets.
 */
export function stateDiffers(channel: string, before: Uint8Array, after: Uint8Array, whole = false): boolean {
  const type = stateTypes.get(channel);
  if (type === undefined) return Buffer.compare(before, after) !== 0;
  try {
    const text = (state: Uint8Array) => (whole ? inWhole : described)(toGatewayJson(type, state));
    return text(before) !== text(after);
  } catch {
    return Buffer.compare(before, after) !== 0;
  }
}

function described({ buildState, deployState, fileSyncState, metadata }: JsonObject): string {
  const autoTriggers = [buildState, deployState, fileSyncState].map((state) => objectOf(state).autoTrigger ?? null);
  const artifacts = Object.keys(objectOf(objectOf(buildState).artifacts)).sort();
  return JSON.stringify([autoTriggers, artifacts, asSets(metadata ?? null)]);
}

function inWhole({ metadata, ...state }: JsonObject): string {
  return JSON.stringify([sorted(state), asSets(metadata ?? null)]);
}

/** Maps have no order. */
function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]));
}

function asSets(value: JsonValue): JsonValue {
  if (Array.isArray(value)) {
    const items = value.map(asSets).map((item) => ({ item, key: JSON.stringify(item) }));
    return items.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ item }) => item);
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, asSets(item)]));
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
