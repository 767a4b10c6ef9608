import { filterFields } from "@tapedeck/shared/filter/filter";
import { z } from "zod";

/** What a sink's name is made of: it is part of keys, labels and addresses. */
export const sinkNameForm = "1–63 lower-case letters, digits and -, a letter or digit at both ends";
export const sinkNamePattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export const formatNames = ["webhook", "otlp", "slack", "chat"] as const;
export type FormatName = (typeof formatNames)[number];

export const modes = ["batched", "structured"] as const;

/** Sinks of a workspace, at most. */
export const maxSinks = 50;

/** Events of a sink that may be parked. With more it stands still, so that a broken target can't take everything. */
export const maxParked = 100;

/** A filter as it was parsed: `parseFilter` has checked it. */
export const storedFilter = z.partialRecord(z.enum(filterFields), z.array(z.string()).readonly());

const definitionSchema = z.object({
  target: z.url(),
  format: z.enum(formatNames),
  mode: z.enum(modes),
  /** CDEvents instead of Tapedeck's own events. */
  cdevents: z.boolean().optional(),
  filter: storedFilter,
  /** Spans are sent at their start, too; of `otlp`. */
  live: z.boolean().optional(),
  /** JSON with placeholders, of chats. */
  template: z.record(z.string(), z.unknown()).optional(),
  /** Sent with each request; values may be secrets. */
  headers: z.record(z.string(), z.string()),
  /** Signs requests; absent: they are not signed. */
  secret: z.string().optional(),
  /** Where it begins: `now`, `start`, a position or a time. */
  start: z.string(),
  /** RFC 3339. */
  createdAt: z.string(),
  /** The epoch of the log when it was made: a workspace that is removed takes its sinks along. Absent: of the settings. */
  epoch: z.string().optional(),
});

/** A sink as an admin or the operator has defined it, with its secrets. */
export type SinkDefinition = Readonly<z.infer<typeof definitionSchema>>;

const controlSchema = z.object({
  paused: z.boolean(),
  /** That of the cursor that was set by hand last. */
  generation: z.string().optional(),
});
export type SinkControl = Readonly<z.infer<typeof controlSchema>>;

const cursorSchema = z.object({
  /** Everything up to this position is delivered, parked, or of no interest. */
  position: z.string(),
  /** Another one when it is set by hand. */
  generation: z.string(),
  /** What the sink's format remembers there. */
  memory: z.string().optional(),
  /** RFC 3339. */
  at: z.string(),
});
export type StoredCursor = Readonly<z.infer<typeof cursorSchema>>;

const statusSchema = z.object({
  /** `full`: too many events are parked. `waiting`: the log can't be read now. */
  state: z.enum(["delivering", "retrying", "full", "waiting"]),
  /** Messages of the log that were not passed yet, and for how long the oldest event waits. */
  lagEvents: z.number(),
  lagSeconds: z.number(),
  /** The last failure, if nothing was delivered since. */
  error: z.string().optional(),
  /** Absent: it was not the target that failed. */
  failure: z.enum(["refused", "away"]).optional(),
  /** Since when. RFC 3339. */
  since: z.string().optional(),
  /** RFC 3339. */
  at: z.string(),
});
export type SinkStatus = Readonly<z.infer<typeof statusSchema>>;

const parkedSchema = z.object({
  /** The event's id; what it says stays in the log alone. */
  event: z.string(),
  kind: z.string(),
  tries: z.number(),
  status: z.number().optional(),
  error: z.string(),
  /** RFC 3339. */
  at: z.string(),
});
export type ParkedEvent = Readonly<z.infer<typeof parkedSchema>>;

const reading =
  <T>(schema: z.ZodType<T>) =>
  (value: unknown): T | undefined =>
    schema.safeParse(value).data;

/** Read what is stored; undefined for what another version has written. */
export const definitionIn = reading(definitionSchema);
export const controlIn = reading(controlSchema);
export const cursorIn = reading(cursorSchema);
export const statusIn = reading(statusSchema);
export const parkedIn = reading(parkedSchema);

/** What became of a request. `away`: nobody has answered who could judge it, or the target asks to come later. */
export const sendOutcomes = ["delivered", "refused", "away"] as const;
export type SendOutcome = (typeof sendOutcomes)[number];

/** What a target has answered to one request by hand. `status` null: nothing. */
export type SentResult = {
  readonly accepted: boolean;
  readonly outcome: SendOutcome;
  readonly status: number | null;
  readonly error: string | null;
};

/** `warning`: what may happen to what the sink delivers next. */
export type TestResult = SentResult & { readonly warning: string | null };
