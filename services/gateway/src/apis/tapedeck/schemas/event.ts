import { kinds } from "@tapedeck/shared/events/kinds";
import { outcomeNames, timeSourceNames } from "@tapedeck/shared/events/names";
import { z } from "zod";
import { count, named, position, sessionId, sourceName, text, time } from "./fields.ts";

const operationOfEvent = z
  .object({
    kind: z.string(),
    subject: z.string(),
    runner: count("See Operation."),
    loop: count("See Operation."),
    instance: z.string().optional(),
  })
  .describe("The operation that it starts, ends or belongs to.");

const original = z
  .object({
    type: text("Full name of the upstream's protobuf message.", "proto.LogEntry"),
    size: count("Bytes."),
    bytes: z
      .string()
      .meta({ contentEncoding: "base64" })
      .optional()
      .describe("Absent for a message that was too large to keep."),
  })
  .describe("The upstream's own message, only with `original=true`.");

export const event = z
  .object({
    position,
    recordedAt: time("When it was recorded, by the log's clock."),
    id: text("`<session>.<channel>.<ordinal>`, or `<source>.tapedeck.<ordinal>`.", "01M7XB1CJJ74KGYJT57DM4N80H.v1.16"),
    source: sourceName,
    session: sessionId.optional().describe("Absent for facts about the source as a whole."),
    channel: text("One stream of a session; `tapedeck` has Tapedeck's own events.", "v1"),
    ordinal: count("1, 2, 3 … inside its session and channel."),
    frameOrdinal: count("1, 2, 3 … of the frame that it comes from."),
    part: count("0, 1 … of this event inside its frame."),
    kind: z.string().meta({ description: "`noun.verb`.", pattern: "^[a-z]+\\.[a-z_]+$", examples: kinds }),
    subject: text("What it is about: artifact, resource, pod, job …", "web").optional(),
    outcome: named(outcomeNames).optional(),
    error: z
      .object({
        code: text("The upstream's own.", "BUILD_USER_ERROR"),
        message: z.string(),
        suggestions: z.array(z.string()),
      })
      .optional(),
    summary: text("One line for people.", "build of web succeeded"),
    occurredAt: time("When it happened.").optional(),
    timeSource: named(timeSourceNames)
      .describe("Whose clock `occurredAt` is; `interval`: it happened between `notBefore` and then.")
      .optional(),
    notBefore: time("See `timeSource`.").optional(),
    observedAt: time("When Tapedeck observed it.").optional(),
    operation: operationOfEvent.optional(),
    inferred: z.literal(true).optional().describe("Concluded by Tapedeck, not reported by the upstream."),
    injected: z.literal(true).optional().describe("Put into the upstream by a call that passed through Tapedeck."),
    redacted: count("How many secrets were masked in it.").optional(),
    detail: z.looseObject({}).optional().meta({ $ref: "#/components/schemas/Detail" }),
    original: original.optional(),
  })
  .describe("One normalized fact.");

export const cloudEvent = z
  .object({
    specversion: z.literal("1.0"),
    id: event.shape.id,
    source: z.string().meta({
      format: "uri-reference",
      description: "`/sources/` and the source's full name.",
      examples: ["/sources/acme/alice/shop/skaffold"],
    }),
    type: text("`dev.tapedeck.` and the event's kind.", "dev.tapedeck.build.failed"),
    subject: event.shape.subject,
    time: time("When it happened; when that is not known, when it was observed or recorded."),
    datacontenttype: z.literal("application/json"),
    sequence: text("Orders all events of the log as text.", "0000000000010482"),
    tapedeckposition: position,
    recordedtime: event.shape.recordedAt,
    data: event,
  })
  .describe(
    "An event as CloudEvents 1.0.2 has it, with the extensions `sequence`, `recordedtime` and `tapedeckposition`.",
  );
