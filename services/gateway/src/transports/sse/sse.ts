import type { SubscriptionMessage } from "../../apis/tapedeck/messages.ts";

/**
 * Server-sent events: `id` is the position, so that EventSource resumes by itself; events have no `event:` line (so
 * `onmessage` fires), the other messages are named by their type.
 */
export function toSse({ type, position, json }: SubscriptionMessage): string {
  return `${type === "event" ? "" : `event: ${type}\n`}id: ${position}\ndata: ${json}\n\n`;
}

export function toNdjson({ json }: Pick<SubscriptionMessage, "json">): string {
  return `${json}\n`;
}
