import { auditEntry } from "@tapedeck/shared/audit/entry";
import { tokenRecord } from "@tapedeck/shared/tokens/token";
import { z } from "zod";
import { comparedSide, comparison, difference } from "./schemas/comparison.ts";
import { cloudEvent, event } from "./schemas/event.ts";
import { count, position, text, time } from "./schemas/fields.ts";
import { cause, historyItem, hit, operation, session, source } from "./schemas/lists.ts";
import { parkedEvent, retriedEvent, sink, sinkTest } from "./schemas/sinks.ts";
import { statsKinds, statsRow } from "./schemas/stats.ts";
import { error, message, progressLine, state } from "./schemas/stream.ts";
import { removingWorkspace, workspace, workspaceRetention } from "./schemas/workspaces.ts";

// The answers of the HTTP API. Lists are typed by these schemas, but answers are not checked against them at run time. A
// client has to expect fields, and kinds of events, that are not known here yet.

const token = tokenRecord.describe("What its holder may do in a workspace, and until when.");

const readiness = z.object({
  ready: z.boolean(),
  checks: z
    .record(z.string(), z.string())
    .describe("`ok` or the reason, for each dependency: the log, recording into it, query."),
  details: z
    .object({ warnings: z.array(z.string()) })
    .optional()
    .describe("Failures that do not stop the service: damage to the log."),
});

const page = (items: z.ZodType, next: string, reflects: string) =>
  z.object({
    items: z.array(items),
    nextPage: z.string().optional().describe(`${next} Absent on the last page.`),
    position: position.describe(reflects),
  });
const nextPage = "Pass it as `page` to get the next page.";
const reflected = "The position that the answer reflects.";

type StatsSchema = (typeof statsKinds)[keyof typeof statsKinds]["schema"];

function statistics() {
  const schemas = Object.values(statsKinds).flatMap((kind) => {
    const row = statsRow(kind);
    const list = z.object({ items: z.array(row), position: position.describe(reflected) });
    return [
      [kind.schema, row],
      [`${kind.schema}List`, list],
    ];
  });
  return Object.fromEntries(schemas) as Record<StatsSchema | `${StatsSchema}List`, z.ZodType>;
}

/** The schemas by the names that they have in the API's description. */
export const answers = {
  Position: position,
  Source: source,
  Sources: page(source, nextPage, reflected),
  Session: session,
  Sessions: page(session, nextPage, reflected),
  Cause: cause,
  Operation: operation,
  Operations: page(operation, nextPage, reflected),
  Hit: hit,
  HistoryItem: historyItem,
  History: page(historyItem, nextPage, reflected).extend({
    total: z.int().optional().describe("How many items match `q` with the other parameters, 2,000 at most."),
    totalIsMinimum: z.boolean().optional().describe("Whether more may match than `total`."),
  }),
  ...statistics(),
  ComparedSide: comparedSide,
  Difference: difference,
  Comparison: comparison,
  Status: z
    .object({
      position,
      logPosition: position.describe("The end of the log."),
      behindMessages: count("Messages of the log that the tables do not have yet."),
      log: z
        .object({
          messages: count("Messages that the log keeps."),
          bytes: count("Bytes of these on disk."),
          lastDay: z
            .object({
              messages: count("Messages of the last 24 hours."),
              bytes: count("Bytes of as many messages of the log."),
            })
            .describe("How it grows."),
        })
        .nullable()
        .describe("Of all workspaces. `null`: the caller's token is for one workspace."),
      waiting: z
        .array(
          z.object({
            source: z.string(),
            items: count("Items that are not in the log yet."),
            bytes: count("Bytes that these take in memory and on disk."),
            dropped: count("Frames dropped for lack of room since its tap began."),
          }),
        )
        .nullable()
        .describe(
          "What the taps of configured sources hold; those of `tapedeck run` and `record` hold theirs on their machines. " +
            "`null`: ingest does not answer.",
        ),
      setAside: z
        .array(
          z.object({
            source: z.string(),
            events: count("Events that could not be applied to the tables."),
            firstPosition: position.describe("The first of them in the log."),
            lastPosition: position.describe("The last of them."),
            lastAt: time("When the last of them was set aside, by query's clock."),
            errorCode: text("Why the last of them was: a SQLSTATE, or the name of an error.", "22003"),
            error: text("The error's text.", "integer out of range"),
          }),
        )
        .describe(
          "Sources with events that are in the log and in no list, state or statistic, the last one first, 100 at most. The " +
            "next rebuild of the tables tries these events again.",
        ),
    })
    .describe("How far the tables are behind the log, and how large the log is. `position`: how far the tables are."),
  State: state,
  Event: event,
  Events: page(
    event,
    "Pass it as `after` to get the next page.",
    "Everything up to it that matches is in this page and those before it: the `after` of a stream that continues.",
  ),
  Message: message,
  CloudEvent: cloudEvent,
  CloudEvents: z.array(cloudEvent),
  Error: error,
  Token: token,
  Tokens: z.object({ items: z.array(token) }),
  NewToken: token.extend({ token: text("The token that calls send: `Authorization: Bearer <token>`.") }),
  Erasing: progressLine({
    source: event.shape.source,
    state: z
      .enum(["removing", "done"])
      .describe("`removing`: the session can no longer be read, and is being removed from the log."),
    events: count("Events to erase; absent until they are counted.").optional(),
    removed: count("Events that are erased."),
    exports: z
      .array(auditEntry.pick({ time: true, who: true, kind: true }))
      .optional()
      .describe(
        "When it is `done`: who has exported the session before, as far as the audit log reaches, 100 at most. Their files are not erased. " +
          "Absent where the audit log can't be read.",
      ),
  }),
  ErasingDeveloper: progressLine({
    developer: event.shape.source.describe("The developer."),
    state: z.enum(["removing", "done"]),
    sessions: count("Sessions of the developer."),
    erased: count("Sessions that are erased."),
    waitsFor: text("What keeps the erasure from its end, such as a recording that goes on; empty: nothing does."),
    exports: z
      .array(auditEntry.pick({ time: true, who: true, kind: true }))
      .optional()
      .describe(
        "When it is `done`: who has exported one of the sessions before, 100 at most. Their files are not erased.",
      ),
    tokens: z
      .array(token.pick({ id: true, name: true }))
      .optional()
      .describe("When it is `done`: tokens that still record under this name. Revoke them."),
  }),
  Rebuilding: progressLine({
    messages: count("Messages of the log when the rebuild began. A message holds one event or several."),
    done: count("Messages that are in the new tables."),
    events: count(
      "Events that this rebuild has put into the new tables; one that continues an earlier rebuild counts its own.",
    ),
  }),
  Workspace: workspace,
  Workspaces: z.object({ items: z.array(workspace) }),
  RemovingWorkspace: removingWorkspace,
  WorkspaceRetention: workspaceRetention,
  Sink: sink,
  Sinks: z.object({ items: z.array(sink) }),
  NewSink: sink.extend({
    secret: text("Signs its requests. Only this answer has it, and only if the request had none.").optional(),
  }),
  RemovedSink: sink.pick({ name: true }),
  SinkTest: sinkTest,
  ParkedEvents: z.object({ items: z.array(parkedEvent) }),
  RetriedEvents: z.object({
    items: z.array(retriedEvent),
    left: count("How many were not tried, because the target is away."),
  }),
  DroppedEvents: z.object({ dropped: count("How many were dropped.") }),
  AuditLine: z.union([
    auditEntry.extend({ type: z.literal("entry") }),
    z.object({ type: z.literal("complete") }),
    z.object({ type: z.literal("error"), error: error.shape.error }),
  ]),
  Health: z.object({ status: z.literal("ok") }),
  Readiness: readiness,
} as const;

export type AnswerOf<Name extends keyof typeof answers> = z.infer<(typeof answers)[Name]>;
