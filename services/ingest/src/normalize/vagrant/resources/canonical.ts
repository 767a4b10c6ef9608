import { isDeepStrictEqual } from "node:util";
import { ownValue } from "@tapedeck/shared/own-value";

/**
 * Names of the top-level fields in which two decoded messages of one type differ; a field that is not described goes by
 * its number. A missing value and a default one are alike; lists keep their order, maps have none; what is packed in an
 * Any is compared by its bytes.
 */
export function changedFields(before: CanonicalFields, now: CanonicalFields): readonly string[] {
  const [was, is] = [withUnknown(before), withUnknown(now)];
  const names = new Set([...Object.keys(is), ...Object.keys(was)]);
  return [...names].filter((name) => !isDeepStrictEqual(canonical(ownValue(was, name)), canonical(ownValue(is, name))));
}

/** A message as ts-proto decodes it. */
export type CanonicalFields = Readonly<Record<string, unknown>> & {
  /** Keyed by tag (number and wire type). */
  readonly _unknownFields?: Readonly<Record<number, readonly Uint8Array[]>> | undefined;
};

/** A reference to a resource, reduced to its id: its name may change, and is not always answered. */
export function identified(ref: { readonly resource_id: string } | undefined): unknown {
  return ref === undefined || ref.resource_id === "" ? ref : { resource_id: ref.resource_id };
}

function withUnknown({ _unknownFields = {}, ...fields }: CanonicalFields): Readonly<Record<string, unknown>> {
  const unknown = new Map<string, unknown[]>();
  for (const [tag, values] of Object.entries(_unknownFields)) {
    const number = String(Number(tag) >>> 3);
    unknown.set(number, [...(unknown.get(number) ?? []), tag, ...values]);
  }
  return { ...fields, ...Object.fromEntries(unknown) };
}

/** Undefined for every value that means the same as a missing one. */
function canonical(value: unknown): unknown {
  if (value instanceof Uint8Array) return value.length === 0 ? undefined : Buffer.from(value);
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(canonical);
  if (typeof value !== "object" || value === null) {
    return value === "" || value === 0 || value === 0n || value === false ? undefined : (value ?? undefined);
  }
  const fields = Object.entries(value).flatMap(([name, inside]) => {
    const one = canonical(inside);
    return one === undefined ? [] : [[name, one] as const];
  });
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}
