import type { StreamInfo } from "@nats-io/jetstream";

/** Key in the stream's metadata. */
export const epochKey = "tapedeck-epoch";

/** Undefined when the stream was not made by Tapedeck. */
export function epochOf({ config }: StreamInfo): string | undefined {
  return config.metadata?.[epochKey];
}

/** Six random characters of 0-9 a-z. */
export function newEpoch(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(6)), (random) => (random % 36).toString(36)).join("");
}
