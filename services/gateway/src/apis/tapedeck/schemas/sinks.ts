import { filterFields } from "@tapedeck/shared/filter/filter";
import { z } from "zod";
import { formatNames, modes, sendOutcomes } from "../../../sinks/definition.ts";
import { count, position, text, time } from "./fields.ts";

const sinkName = text("Its name.", "ci-hook");
const status = z.int().nullable().describe("The status of HTTP that was answered; `null`: nobody answered.");
const error = z.string().nullable().describe("Why it was not accepted; `null`: it was.");

export const sink = z
  .object({
    name: sinkName,
    origin: z.enum(["stored", "settings"]).describe("`settings`: the operator has set it, and only they change it."),
    target: text("The origin of its target. The rest may be a secret.", "https://hooks.example/…"),
    format: z.enum(formatNames).describe("What its requests look like."),
    mode: z.enum(modes).describe("Whether a request has several events."),
    cdevents: z.boolean().describe("Whether it sends CDEvents instead of Tapedeck's own events."),
    live: z.boolean().describe("With `otlp`: whether spans are sent at their start, too."),
    filter: z.partialRecord(z.enum(filterFields), z.array(z.string())).describe("Which events it gets; `{}`: all."),
    headers: z.array(z.string()).describe("The names of the headers that each request has."),
    signed: z.boolean().describe("Whether its requests are signed."),
    state: z
      .enum(["delivering", "retrying", "full", "waiting", "paused"])
      .describe(
        "`retrying`: its target refuses or is away, see `failure`. `full`: too many events are parked. `waiting`: no gateway delivers it yet, or the log can't be read.",
      ),
    position: position.nullable().describe("Everything up to it is delivered or parked; `null`: it has not begun."),
    lagEvents: count("Messages of the log that it has not passed, as of the last 10 s."),
    lagSeconds: count("How long the oldest event that it is delivering has been in the log, likewise."),
    parked: count("Events that its target refuses."),
    error: z.string().nullable().describe("The last failure; `null`: it is well."),
    failure: z
      .enum(["refused", "away"])
      .nullable()
      .describe("Whether its target refused it, or is away as in `outcome`; `null`: neither."),
    failingSince: time("Since when it fails; `null`: it is well.").nullable(),
  })
  .describe("A sink: where events are delivered as they are recorded.");

export const sinkTest = z.object({
  accepted: z.boolean().describe("Whether its target accepted."),
  outcome: z
    .enum(sendOutcomes)
    .describe(
      "`refused`: its target answered something else than 2xx, or the event can't be written. `away`: nobody answered within 15 s, or 408, 425, 429 or 503 was answered.",
    ),
  status,
  error,
  warning: z.string().nullable().describe("What may happen to what it delivers next; `null`: nothing of note."),
});

const parkedPlace = position.describe("Where the event is in the log.");

export const parkedEvent = z
  .object({
    position: parkedPlace,
    event: text("The event's id.", "01M7XB1CJJ74KGYJT57DM4N80H.v1.12"),
    kind: text("The event's kind.", "build.failed"),
    source: text("The event's source.", "default/alice/shop/skaffold"),
    tries: count("How often it failed in the same way before it was parked."),
    status: z.int().optional().describe("The status that its target answered last."),
    error: z.string().describe("Why its target refused it."),
    at: time("When it was parked."),
  })
  .describe("An event that a target refuses. What it says is in the log.");

export const retriedEvent = sinkTest
  .omit({ warning: true })
  .extend({ position: parkedPlace })
  .describe("With a `status` of null and `accepted`, a chat has no message about it: nothing was sent.");
