/** The state of an upstream: which collections of query make it up, and how it is rendered as JSON. */
export type UpstreamState = {
  /** The state can be tens of MiB, so that only a few are assembled at once. */
  readonly isLarge: boolean;
  readonly collections: readonly [StateCollection, ...StateCollection[]];
  /** `messages`: the encoded messages of each collection, in the order of `collections`. */
  readonly toJson: (messages: readonly (readonly Uint8Array[])[]) => object;
};

/** `name`: with the upstream before it, as query knows it. `messageType`: the full name of the upstream's message. */
export type StateCollection = readonly [name: string, messageType: string];
