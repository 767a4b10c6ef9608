const partBytes = 512 * 1024;
/** Bytes that a list has around each of its entries. */
const frameBytes = 6;

/** Parts of at most 512 KiB, one at least; an entry larger than that is a part of its own. `sizeOf` in bytes. */
export function inParts<T>(entries: readonly T[], sizeOf: (entry: T) => number): readonly (readonly T[])[] {
  const parts: T[][] = [[]];
  let size = 0;
  for (const entry of entries) {
    const added = sizeOf(entry) + frameBytes;
    if (size > 0 && size + added > partBytes) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1)?.push(entry);
    size += added;
  }
  return parts;
}
