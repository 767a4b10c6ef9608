import { status } from "@grpc/grpc-js";
import { Refusal } from "../status.ts";

/** The fields that all kinds of stored records share. */
type Stored = { readonly resource_id: string; readonly name: string };

/** Throws FAILED_PRECONDITION where the real one does without what a call is about. */
export function needed<T>(message: T | undefined, name: string): T {
  if (message === undefined) throw new Refusal(status.FAILED_PRECONDITION, `${name}: cannot be nil`);
  return message;
}

export function notFound(kind: string): Refusal {
  return new Refusal(status.NOT_FOUND, `failed to locate ${kind} (record not found)`);
}

/** Everything that does not validate is INTERNAL. */
export function invalid(message: string): Refusal {
  return new Refusal(status.INTERNAL, message);
}

export function checkPresent<T extends object>(record: T, fields: readonly (keyof T & string)[]): void {
  for (const field of fields) if (record[field] === "") throw invalid(`${field}: cannot be blank.`);
}

/** No other record may have the same in all of these fields. */
export function checkUnique<T extends Stored>(
  records: Iterable<T>,
  record: T,
  { fields, among = () => true }: { readonly fields: readonly (keyof T & string)[]; among?: (other: T) => boolean },
): void {
  for (const other of records) {
    if (other.resource_id === record.resource_id || !among(other)) continue;
    if (fields.every((field) => other[field] === record[field])) throw invalid(`${fields.join(", ")}: must be unique.`);
  }
}

/** `given`'s values of these fields in the place of `old`'s, those that are not zero. */
export function updated<T extends object>(old: T, given: T, fields: readonly (keyof T)[]): T {
  const set = fields.filter((field) => given[field] !== undefined && given[field] !== "");
  return { ...old, ...Object.fromEntries(set.map((field) => [field, given[field]])) };
}
