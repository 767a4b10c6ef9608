import type { Fields, Scenario } from "./scenario.ts";

// What the sessions of a rkt host and of a Vagrant server have in common.

export type Fact = Fields & { readonly kind: string };
/** `at`: milliseconds since the scenario's start. */
export type When = { readonly at?: number; readonly more?: Fields };

export type AddFrame = (channel: string, original: Fields["original"], facts: readonly Fact[], when?: When) => void;

/** Adds the facts of one observation. The first fact carries the upstream's message. */
export function framesOf(session: string, { add }: Pick<Scenario, "add">): AddFrame {
  return (channel, original, facts, { at, more } = {}) => {
    for (const [part, fact] of facts.entries()) {
      const first = part === 0 && original ? { original } : {};
      add({ session, channel, part, ...fact, ...more, ...first }, at);
    }
  };
}

export function original(type: string, encoded: Uint8Array) {
  return { type, bytes: Buffer.from(encoded), size: BigInt(encoded.length) };
}

export type DescriptionParts = {
  readonly parts: number;
  readonly entries: number;
  readonly originalOf: (part: number) => Fields["original"];
  /** Runs after each part but the last. */
  readonly between: (part: number) => void;
};

/** Adds a description of a channel's inventory in parts. */
export function describeInParts(
  frame: AddFrame,
  channel: string,
  { parts, entries, originalOf, between }: DescriptionParts,
): void {
  for (let part = 0; part < parts; part += 1) {
    const detail = { $case: "host" as const, value: { part, parts, entries } };
    frame(channel, originalOf(part), [{ kind: "inventory.described", detail }]);
    if (part + 1 < parts) between(part);
  }
}
