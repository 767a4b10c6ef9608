import { ownValue } from "@tapedeck/shared/own-value";
import { counted, jsonData, shortened } from "./answer.ts";

/** A value as JSON in at most so many bytes: what lies deepest gives way to its size. `isWhole`: nothing did. */
export function outline(value: unknown, maxBytes: number): { readonly json: string; readonly isWhole: boolean } {
  for (let depth = deepest; depth > 0; depth--) {
    const json = jsonData(depth === deepest ? value : upTo(value, depth));
    if (Buffer.byteLength(json) <= maxBytes) return { json, isWhole: depth === deepest };
  }
  return { json: jsonData(sizeOf(value)), isWhole: false };
}

const deepest = 9;
const maxEntries = 40;
const maxText = 200;

function upTo(value: unknown, depth: number): unknown {
  if (typeof value === "string") return shortened(value, maxText);
  if (typeof value !== "object" || value === null) return value;
  if (depth === 0) return sizeOf(value);
  if (Array.isArray(value)) {
    const first = value.slice(0, maxEntries).map((one) => upTo(one, depth - 1));
    return value.length <= maxEntries ? first : [...first, `… (${value.length - maxEntries} more)`];
  }
  const entries = Object.entries(value);
  const first = entries.slice(0, maxEntries).map(([name, one]) => [name, upTo(one, depth - 1)]);
  return Object.fromEntries(
    entries.length <= maxEntries ? first : [...first, ["…", counted(entries.length - maxEntries, "more field")]],
  );
}

function sizeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? value : `[… ${value.length}]`;
  if (typeof value !== "object" || value === null) return value;
  const names = Object.keys(value);
  return names.length === 0 ? value : `{… ${names.length}: ${names.slice(0, 8).join(", ")}}`;
}

/**
 * The value at a path such as "v1.buildState.artifacts" or "pods.0"; undefined: there is none. Names may have dots themselves,
 * as images have: "v1.buildState.artifacts.gcr.io/shop/web".
 */
export function valueAt(value: unknown, path: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  const named = (name: string) => ownValue(value as Record<string, unknown>, name);
  const whole = named(path);
  if (whole !== undefined) return whole;
  for (let dot = path.indexOf("."); dot >= 0; dot = path.indexOf(".", dot + 1)) {
    const found = valueAt(named(path.slice(0, dot)), path.slice(dot + 1));
    if (found !== undefined) return found;
  }
  return undefined;
}
