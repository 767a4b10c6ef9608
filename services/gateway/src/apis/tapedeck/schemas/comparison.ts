import { outcomeNames } from "@tapedeck/shared/events/names";
import { z } from "zod";
import { count, named, position, sessionId, sourceName, text, time, upstream } from "./fields.ts";
import { cause } from "./lists.ts";

/** From the most informative to the least, where nothing else decides. */
export const differenceKinds = [
  ...["resource", "failure", "command", "version", "platform", "configuration", "artifact"],
  ...["file", "label", "port", "debugger", "duration", "gap"],
] as const satisfies readonly string[];
export type DifferenceKind = (typeof differenceKinds)[number];

const failure = z
  .object({
    phase: text("`build`, `deploy`, `check`, `command` …", "deploy"),
    subject: text("Artifact, resource or command; may be empty.", "web"),
    errorCode: text("The upstream's own code; may be empty.", "DEPLOY_KUBECTL_USER_ERR"),
    error: text("The error's text.", "kubectl apply: exit status 1"),
    cause: cause.nullable().describe("Null: neither output nor error say why."),
    suggestions: z.array(z.string()).describe("Of the upstream."),
    position: position.describe("Of the event."),
    tries: count("How often the step failed: Skaffold tries a sync up to four times."),
    output: z
      .array(z.object({ text: z.string(), position, isCause: z.boolean().describe("The line is the cause.") }))
      .describe("The step's output around the cause."),
  })
  .describe("What failed first.");

export const comparedSide = z
  .object({
    name: text("For people, beside the other side.", "loop 14"),
    source: sourceName,
    upstream,
    session: sessionId,
    unit: z.enum(["loop", "command", "session"]).describe("What is compared: `session` where there is no loop."),
    runner: count("Of the loop: counts the configuration loads of the session."),
    loop: count("Number of the loop in its runner; 0 for a command or a session."),
    subject: text("Name of the command; otherwise empty.", "up"),
    outcome: named(outcomeNames).nullable().describe("Null while it runs."),
    startedAt: time("When it began.").nullable(),
    endedAt: time("When it ended; null while it runs.").nullable(),
    durationMs: count("Milliseconds.").nullable(),
    startPosition: position.describe("Of the event that began it."),
    position: position.describe("State and events are those up to here."),
    failure: failure.nullable(),
    unread: z
      .array(z.string())
      .describe("Sentences: what was recorded of it and not compared, because there is too much."),
  })
  .describe("One side of a comparison.");

export const difference = z
  .object({
    kind: z.enum(differenceKinds),
    subject: text("What differs: a label, a resource, a setting …", "branch"),
    text: text("A sentence.", "branch: fix/manifests; main in loop 11"),
    left: z.string().nullable().describe("The value on the left; null: absent."),
    right: z.string().nullable().describe("The value on the right; null: absent."),
    evidence: z
      .array(
        z.object({
          side: z.enum(["left", "right"]),
          session: sessionId,
          position,
          text: text("What was recorded there."),
        }),
      )
      .describe("Where it was recorded, on each side."),
  })
  .describe("One difference that could explain the failure.");

export const comparison = z
  .object({
    left: comparedSide,
    right: comparedSide.nullable().describe("Null: there is no good one to compare with."),
    differences: z.array(difference).describe("Most likely explanations first."),
    equal: count("How many facts are the same on both sides."),
    same: z
      .array(
        z.object({
          kind: z.enum(differenceKinds),
          subject: text("What is the same: a label, a resource, a setting …", "deploy.kubectl"),
          value: text("The value on both sides; for a duration, that of each side.", "1"),
        }),
      )
      .describe("What is the same on both sides: the first 500."),
    omitted: count("How many further differences were found; those explain the least."),
    position: position.describe("The position that the answer reflects."),
  })
  .describe("What differs between two sides.");
