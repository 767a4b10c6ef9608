import { errorCodes } from "@tapedeck/shared/errors/errors";
import { z } from "zod";
import { event } from "./event.ts";
import { heardAt, position, sessionId, sourceName, text, time, upstream } from "./fields.ts";

export const state = z
  .object({
    source: sourceName,
    session: sessionId.nullable().describe("Null when the source has none (at that time)."),
    sessionEnded: z.boolean(),
    notHeardSince: time(
      "When its upstream was last seen, for a lost source or where a list is late; otherwise null.",
    ).nullable(),
    heardAt,
    position: position.describe("The position that the state reflects: the events after it follow the state."),
    at: z.string().nullable().describe("The requested time; null: now."),
    upstream,
    state: z.looseObject({}).describe("The upstream's own JSON; Skaffold: `{v1, v2}`."),
  })
  .describe("State of a source at one position.");

export const error = z
  .object({
    error: z.object({
      code: z.enum(errorCodes),
      message: text("What was wrong, and what to do."),
      field: text("The parameter that is wrong.", "after").optional(),
      earliest: position.optional().describe("The first position that is available."),
      latest: position.optional().describe("The last position that is available."),
      choices: z.array(z.string()).optional().describe("Sources to choose from."),
      loss: z
        .enum(["dropped", "unreadable", "lost"])
        .optional()
        .describe(
          "Of `out_of_range`: dropped by a limit, lost by damage, or unreadable until a file of the log is back.",
        ),
    }),
  })
  .describe("Every error of this API; the same codes on every transport.");

const mark = (type: string, description: string) => z.object({ type: z.literal(type), position }).describe(description);

export const message = z
  .union([
    z.object({ type: z.literal("event"), position, event }).describe("Each event that matches, in order, once."),
    mark("caught_up", "Once: what came before was history, what follows is live."),
    mark("bookmark", "Everything up to here that matches has been sent: a client can resume here, as after an event."),
    mark("complete", "The end that `until` named has been reached."),
    z
      .object({ type: z.literal("state"), position, source: sourceName, state: z.looseObject({}) })
      .describe("First, with `state=true`."),
    z
      .object({ type: z.literal("error"), error: error.shape.error })
      .describe("The stream can't continue: the last message."),
  ])
  .describe("One line of NDJSON, or the `data` of one server-sent event.");

/** Lines that report the progress of a long request. */
export const progressLine = (progress: z.ZodRawShape) =>
  z.union([
    z.object({ type: z.literal("progress"), ...progress }),
    z.object({ type: z.literal("complete") }),
    z.object({ type: z.literal("error"), error: error.shape.error }),
  ]);
