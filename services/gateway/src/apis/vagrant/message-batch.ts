/** The real server sends at most this many items in one message. */
const maxItems = 64;

/** A message grows no further: clients accept 4 MiB by default. One item always fits. */
const maxBytes = 1 << 20;

/** Collects encoded items into messages. */
export class MessageBatch {
  readonly #messageOf: (items: readonly Uint8Array[]) => Uint8Array;
  #items: Uint8Array[] = [];
  #bytes = 0;

  constructor(messageOf: (items: readonly Uint8Array[]) => Uint8Array) {
    this.#messageOf = messageOf;
  }

  /** Yields the message before when it has no room for this item. */
  *add(item: Uint8Array): Generator<Uint8Array, void> {
    if (this.#items.length === maxItems || this.#bytes + item.byteLength > maxBytes) yield* this.flush();
    this.#items.push(item);
    this.#bytes += item.byteLength;
  }

  /** Yields the items that are left, as one message. */
  *flush(): Generator<Uint8Array, void> {
    if (this.#items.length === 0) return;
    const message = this.#messageOf(this.#items);
    this.#items = [];
    this.#bytes = 0;
    yield message;
  }
}
