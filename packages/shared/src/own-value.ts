/**
 * The value under a name that may come from outside. Undefined also for `constructor`, `toString` or `__proto__`, which
 * every plain object has without an entry of that name.
 */
export function ownValue<T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined;
}
