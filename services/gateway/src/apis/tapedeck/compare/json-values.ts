import { ownValue } from "@tapedeck/shared/own-value";

/** A value in a state; its shape is not guaranteed. */
export type Json = unknown;

export function at(value: Json, ...path: readonly string[]): Json {
  return path.reduce<Json>(
    (inner, name) =>
      typeof inner === "object" && inner !== null ? ownValue(inner as Readonly<Record<string, Json>>, name) : undefined,
    value,
  );
}

export function entries(value: Json): readonly (readonly [string, Json])[] {
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}

export function list(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: Json): string {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

/** "InProgress" and "NOT_STARTED" as words. */
export function words(status: string): string {
  return status
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toLowerCase();
}
