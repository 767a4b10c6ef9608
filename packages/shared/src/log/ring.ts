/** The newest entries in order of sequence, bounded in number and bytes. */
export type Ring<T extends { readonly seq: number }> = {
  push(entry: T, bytes: number): void;
  /** The ring still holds every pushed entry after this sequence. */
  readonly floor: number;
  /** Index of the first entry after a sequence. Indices are stable while entries come and go. */
  indexAfter(seq: number): number;
  /** Undefined if the entry is gone or not yet pushed. */
  at(index: number): T | undefined;
  readonly bytes: number;
};

export type RingLimits = { readonly entries: number; readonly bytes: number };

export function ring<T extends { readonly seq: number }>(startAfter: number, limits: RingLimits): Ring<T> {
  const slots: ({ readonly entry: T; readonly bytes: number } | undefined)[] = new Array(limits.entries);
  let first = 0;
  let end = 0;
  let floor = startAfter;
  let bytes = 0;

  const slot = (index: number) => slots[index % limits.entries];

  const dropFirst = () => {
    const oldest = slot(first);
    if (oldest === undefined) return;
    floor = oldest.entry.seq;
    bytes -= oldest.bytes;
    slots[first % limits.entries] = undefined;
    first++;
  };

  return {
    push(entry, size) {
      while (end > first && (end - first >= limits.entries || bytes + size > limits.bytes)) dropFirst();
      slots[end % limits.entries] = { entry, bytes: size };
      bytes += size;
      end++;
    },
    get floor() {
      return floor;
    },
    get bytes() {
      return bytes;
    },
    indexAfter(seq) {
      let low = first;
      let high = end;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if ((slot(middle)?.entry.seq ?? 0) > seq) high = middle;
        else low = middle + 1;
      }
      return low;
    },
    at(index) {
      return index >= first && index < end ? slot(index)?.entry : undefined;
    },
  };
}
