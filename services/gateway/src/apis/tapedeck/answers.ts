import { errorCodes } from "@tapedeck/shared/errors/errors";
import { kinds } from "@tapedeck/shared/events/kinds";
import { outcomeNames, timeSourceNames } from "@tapedeck/shared/events/names";
import { tokenRecord } from "@tapedeck/shared/tokens/token";
import { upstreamNames } from "@tapedeck/shared/upstreams";
import { z } from "zod";

// What the HTTP API answers. Lists are typed by these schemas; nothing is checked by them while it is served. A client
// has to expect fields, and kinds of events, that are not known here yet.

const text = (description: string, ...examples: string[]) =>
  z.string().meta({ description, ...(examples.length > 0 && { examples }) });
const time = (description: string) =>
  z.string().meta({ description, format: "date-time", examples: ["2026-11-20T20:41:10.616063658Z"] });
const count = (description: string) => z.int().nonnegative().meta({ description });
const count64 = (description: string) =>
  z.string().meta({ description: `${description} (64 bits, so as text)`, pattern: "^\\d+$", examples: ["3"] });

const position = z.string().meta({
  description: "Where an event stands in the log. Opaque; the same on every transport; valid in its workspace.",
  pattern: "^[a-z0-9]{1,16}-\\d{1,16}$",
  examples: ["t3k9x2-10482"],
});
const sourceName = text("In full: `workspace/developer/project/upstream`.", "acme/alice/shop/skaffold");
const sessionId = text("One lifetime of the upstream: a ULID.", "01M7XB1CJJ74KGYJT57DM4N80H");
const upstream = z.enum(upstreamNames).describe("The kind of tool.");
const named = (names: Readonly<Record<number, string>>) => z.enum(Object.values(names).filter((name) => name !== ""));
const outcome = named(outcomeNames);

const source = z
  .object({
    source: sourceName,
    workspace: z.string(),
    developer: z.string(),
    project: z.string(),
    upstream: z.string(),
    status: z
      .enum(["recording", "waiting", "lost"])
      .describe(
        "`waiting`: for the upstream to begin. `lost`: the upstream, or the tap that records it, was lost in the middle of a session.",
      ),
    currentSession: sessionId.nullable().describe("The newest one, running or ended."),
    lastEventAt: time("When its last event occurred.").nullable(),
    lastPosition: position.describe("Of its last event."),
    firstPosition: position.describe("Of its first event."),
    developerName: text("As it was written before it was made fit for a name.", "Alice"),
    projectName: text("Likewise.", "Shop"),
    address: text("Of the upstream, as it was dialled last.", "127.0.0.1:50051"),
    gaps: count("How often something may be missing."),
    notHeardSince: time("Where it is lost: nothing has been heard of it since; else null.").nullable(),
  })
  .describe("One recorded upstream.");

const session = z
  .object({
    session: sessionId,
    source: sourceName,
    labels: z.record(z.string(), z.string()).describe("For grouping: branch, commit, host and what the user adds."),
    startedAt: time("When it began.").nullable(),
    endedAt: time("When it ended; null while it runs, and where nobody saw when it ended.").nullable(),
    endReason: text("Why it ended; null while it runs.", "process ended").nullable(),
    startPosition: position.describe("Of session.started."),
    endPosition: position.describe("Of its last event; of session.ended or session.lost when it has ended."),
    upstreamVersion: text("As the upstream says it.", "v2.14.2"),
    gaps: count("How often something may be missing."),
  })
  .describe("One lifetime of the upstream behind a source.");

const operation = z
  .object({
    id: z.string(),
    kind: text("`loop`, `build`, `test`, `deploy`, `pod`, `job` …", "build"),
    subject: text("What it is about: artifact, pod, job …; may be empty.", "web"),
    instance: text("Tells operations of one subject apart that run at the same time; else empty."),
    source: sourceName,
    session: sessionId,
    runner: count("Counts the runners (configuration loads) of the session; 0 before the first."),
    loop: count("Counts the dev loops of the runner; 0 outside of loops."),
    startedAt: time("When it began; null when that was not seen.").nullable(),
    endedAt: time("When it ended; null while it runs.").nullable(),
    durationMs: count64("Milliseconds").nullable().describe("Milliseconds (64 bits, so as text); null while it runs."),
    outcome: outcome.nullable().describe("Null while it runs."),
    errorCode: text("The upstream's own; empty without an error.", "BUILD_USER_ERROR"),
    error: text("Its text; empty without an error."),
    exitCode: z.int().nullable().describe("Of apps and commands that have ended, where it is known."),
    cacheHit: z.boolean(),
    platform: text("Of a build; else empty.", "linux/amd64"),
    startPosition: position.describe("Of the event that began it."),
    endPosition: position.nullable().describe("Of the event that ended it; null while it runs."),
  })
  .describe("Something with a start and an end.");

const buildStats = z
  .object({
    artifact: z.string().optional(),
    developer: z.string().optional(),
    project: z.string().optional(),
    source: z.string().optional(),
    day: z.string().meta({ format: "date" }).optional(),
    count: count64("Builds that ran: succeeded or failed"),
    failed: count64("Of these, failed"),
    failureRate: z.number().min(0).max(1).describe("failed / count; 0 where nothing was built."),
    p50Ms: z.int().nullable().describe("Milliseconds, over what ran; null where nothing did."),
    p90Ms: z.int().nullable(),
    p99Ms: z.int().nullable(),
    cached: count64("Not counted above: found in the cache"),
    canceled: count64("Not counted above: canceled"),
    unknown: count64("Not counted above: nobody saw the end"),
  })
  .describe("How long builds take; with the columns that were grouped by.");

const event = z
  .object({
    position,
    recordedAt: time("The log's own time of it."),
    id: text("`<session>.<channel>.<ordinal>`, or `<source>.tapedeck.<ordinal>`.", "01M7XB1CJJ74KGYJT57DM4N80H.v1.16"),
    source: sourceName,
    session: sessionId.optional().describe("Absent for facts about the source as a whole."),
    channel: text("One stream of a session; `tapedeck` is what Tapedeck itself says.", "v1"),
    ordinal: count64("1, 2, 3 … inside its session and channel"),
    frameOrdinal: count64("1, 2, 3 … of the frame that told it"),
    part: count("0, 1 … of this event inside its frame."),
    kind: z.string().meta({ description: "`noun.verb`.", pattern: "^[a-z]+\\.[a-z_]+$", examples: kinds }),
    subject: text("What it is about: artifact, resource, pod, job …", "web").optional(),
    outcome: outcome.optional(),
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
    observedAt: time("When Tapedeck saw it.").optional(),
    operation: z
      .object({
        kind: z.string(),
        subject: z.string(),
        runner: count("See Operation."),
        loop: count("See Operation."),
        instance: z.string().optional(),
      })
      .optional()
      .describe("The operation that it starts, ends or belongs to."),
    inferred: z.literal(true).optional().describe("Concluded by Tapedeck, not told by the upstream."),
    injected: z.literal(true).optional().describe("Put into the upstream by a call that passed through Tapedeck."),
    redacted: count("How many secrets were masked in it.").optional(),
    detail: z.looseObject({}).optional().meta({ $ref: "#/components/schemas/Detail" }),
    original: z
      .object({
        type: text("Full name of the upstream's protobuf message.", "proto.LogEntry"),
        size: count64("Bytes"),
        bytes: z
          .string()
          .meta({ contentEncoding: "base64" })
          .optional()
          .describe("Absent for what was too large to keep."),
      })
      .optional()
      .describe("The upstream's own message, only with `original=true`."),
  })
  .describe("One normalized fact.");

const state = z
  .object({
    source: sourceName,
    session: sessionId.nullable().describe("Null when the source has none (at that moment)."),
    sessionEnded: z.boolean(),
    notHeardSince: time(
      "Where the source is lost: nothing has been heard of its upstream since; else null.",
    ).nullable(),
    position: position.describe("What the state reflects: events after it are those that follow it."),
    at: z.string().nullable().describe("What was asked for; null: now."),
    upstream,
    state: z.looseObject({}).describe("The upstream's own JSON; Skaffold: `{v1, v2}`."),
  })
  .describe("State of a source at one position.");

const error = z
  .object({
    error: z.object({
      code: z.enum(errorCodes),
      message: text("What was wrong, and what to do."),
      field: text("The parameter that is wrong.", "after").optional(),
      earliest: position.optional().describe("The first position that can be asked for."),
      latest: position.optional().describe("The last position that can be asked for."),
      choices: z.array(z.string()).optional().describe("Sources to choose from."),
    }),
  })
  .describe("Every error of this API; the same codes on every transport.");

const mark = (type: string, description: string) => z.object({ type: z.literal(type), position }).describe(description);

const message = z
  .union([
    z.object({ type: z.literal("event"), position, event }).describe("Each event that matches, in order, once."),
    mark("caught_up", "Once: what came before was history, what follows is live."),
    mark("bookmark", "Everything up to here that matches has been sent: a place to go on from, like an event's."),
    mark("complete", "The end that `until` named has been reached."),
    z
      .object({ type: z.literal("state"), position, source: sourceName, state: z.looseObject({}) })
      .describe("First, with `state=true`."),
    z.object({ type: z.literal("error"), error: error.shape.error }).describe("It can't go on: the last message."),
  ])
  .describe("One line of NDJSON, or the `data` of one server-sent event.");

const cloudEvent = z
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
    time: time("When it happened; where that is not known when it was seen, or recorded."),
    datacontenttype: z.literal("application/json"),
    sequence: text("Orders all events of the log as text.", "0000000000010482"),
    tapedeckposition: position,
    recordedtime: event.shape.recordedAt,
    data: event,
  })
  .describe(
    "An event as CloudEvents 1.0.2 has it, with the extensions `sequence`, `recordedtime` and `tapedeckposition`.",
  );

const token = tokenRecord.describe("Who may do what in a workspace, and how long.");

const readiness = z.object({
  ready: z.boolean(),
  checks: z
    .record(z.string(), z.string())
    .describe("`ok` or the reason, by what is needed: the log, recording into it, query."),
  details: z
    .object({ warnings: z.array(z.string()) })
    .optional()
    .describe("What should be known though all is there: damage to the log."),
});

/** Lines of what takes its time. */
const lineOf = (told: z.ZodRawShape) =>
  z.union([
    z.object({ type: z.literal("progress"), ...told }),
    z.object({ type: z.literal("complete") }),
    z.object({ type: z.literal("error"), error: error.shape.error }),
  ]);

const page = (items: z.ZodType, next: string, reflects: string) =>
  z.object({
    items: z.array(items),
    nextPage: z.string().optional().describe(`${next} Absent on the last page.`),
    position: position.describe(reflects),
  });
const nextPage = "Give it as `page` to get what follows.";
const reflected = "What the answer reflects.";

/** By the names that they have in the API's description. */
export const answers = {
  Position: position,
  Source: source,
  Sources: page(source, nextPage, reflected),
  Session: session,
  Sessions: page(session, nextPage, reflected),
  Operation: operation,
  Operations: page(operation, nextPage, reflected),
  BuildStats: buildStats,
  BuildStatsList: z.object({ items: z.array(buildStats), position: position.describe(reflected) }),
  State: state,
  Event: event,
  Events: page(
    event,
    "Give it as `after` to get what follows.",
    "Everything up to it that matches is in this page and those before it: the `after` of a stream that goes on.",
  ),
  Message: message,
  CloudEvent: cloudEvent,
  CloudEvents: z.array(cloudEvent),
  Error: error,
  Token: token,
  Tokens: z.object({ items: z.array(token) }),
  NewToken: token.extend({ token: text("What a call is made with: `Authorization: Bearer <token>`.") }),
  Erasing: lineOf({
    source: event.shape.source,
    events: count("Events that are to go."),
    removed: count("Events that are gone."),
  }),
  Rebuilding: lineOf({ events: count("Events of the log."), done: count("Events that the new tables have.") }),
  Health: z.object({ status: z.literal("ok") }),
  Readiness: readiness,
} as const;

export type Answer<Name extends keyof typeof answers> = z.infer<(typeof answers)[Name]>;
