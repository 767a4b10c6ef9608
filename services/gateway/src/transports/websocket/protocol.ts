import { z } from "zod";
import { speedValue } from "../../apis/tapedeck/parameter-schemas.ts";

// PROTOCOL.md, beside this file, is the contract.

export const subprotocol = "tapedeck.v1.json";

/** 1002 (protocol error) and 1009 (too large) are WebSocket's own. */
export const closeCodes = {
  goingAway: 1001,
  notUnderstood: 4400,
  unauthenticated: 4401,
  noPong: 4408,
  tooMuch: 4429,
} as const;

export const subscriptionId = z.string().min(1).max(64);

export const clientMessage = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("subscribe"),
    id: subscriptionId,
    after: z.string().optional(),
    until: z.string().optional(),
    filter: z.record(z.string(), z.unknown()).optional(),
    state: z.boolean().optional(),
    original: z.boolean().optional(),
    speed: speedValue.optional(),
  }),
  z.strictObject({ type: z.literal("unsubscribe"), id: subscriptionId }),
  z.strictObject({ type: z.literal("ping") }),
]);

export type ClientMessage = z.infer<typeof clientMessage>;
export type Subscribe = Extract<ClientMessage, { type: "subscribe" }>;
