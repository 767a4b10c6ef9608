import { parseFilter } from "@tapedeck/shared/filter/filter";
import { parseWhen } from "@tapedeck/shared/filter/time";
import { z } from "zod";
import { formatNames, modes, type SinkDefinition, sinkNameForm, sinkNamePattern, storedFilter } from "./definition.ts";
import { filterError } from "./filter-error.ts";
import { templateError } from "./format/chat/template.ts";
import { signingSecretError } from "./format/standard-signature.ts";

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Printable ASCII: what every HTTP client can send. */
const headerValue = /^[\t\x20-\x7e]*$/;
/** Headers that the request or its format sets. */
const ownHeaders =
  /^(host|connection|content-.*|transfer-encoding|upgrade|expect|te|trailer|keep-alive|proxy-.*|webhook-.*)$/i;

const refined = (check: (text: string) => string | undefined) =>
  z.string().superRefine((text, context) => {
    const error = check(text);
    if (error !== undefined) context.addIssue({ code: "custom", message: error });
  });

const ofTemplate = z.record(z.string(), z.unknown()).superRefine((template, context) => {
  const error = templateError(template);
  if (error !== undefined) context.addIssue({ code: "custom", message: error });
});

const choice = <const Names extends readonly string[]>(names: Names) =>
  z.enum(names, { error: ({ input }) => `${JSON.stringify(input)} is not one of ${names.join(", ")}` });

/** The caller's clock may be ahead. */
const aheadMs = 60_000;

function startError(text: string): string | undefined {
  const when = parseWhen(text);
  if (when === undefined) {
    return `"${text}" is neither start, now, a position (such as 383600-t3k9x2) nor a time (2026-01-31T12:00:00Z)`;
  }
  const isFuture = when.type === "time" && when.time.getTime() > Date.now() + aheadMs;
  return isFuture ? `${text} is in the future: what is recorded from now on comes after now` : undefined;
}

/** The parts of a sink that both an admin and the operator give. */
export const sinkFields = {
  target: z.string().min(1).meta({ description: "Where requests are posted.", form: "URL" }),
  format: choice(formatNames)
    .default("webhook")
    .meta({ description: "What requests look like.", form: "`webhook`, `otlp`, `slack`, `chat`" }),
  mode: choice(modes).default("batched").meta({
    description: "Up to 100 events in a request, or one.",
    form: "`batched`, `structured`",
  }),
  cdevents: z.boolean().optional().meta({
    description: "Sends [CDEvents](sinks.md#cdevents) instead of Tapedeck's own events; of `webhook`.",
    form: "`true`, `false`",
    defaultText: "`false`",
  }),
  live: z.boolean().optional().meta({
    description: "Sends [spans at their start, too](otlp.md#spans-while-they-run); of `otlp`.",
    form: "`true`, `false`",
    defaultText: "`false`",
  }),
  template: ofTemplate.optional().meta({
    description: "The JSON of [a message](chat.md#any-other-chat), with placeholders; of `slack` and `chat`.",
    form: "mapping",
    defaultText: 'that of Slack; `{ text: "{{text}}" }` of `chat`',
  }),
  filter: z
    .unknown()
    .transform((input, context) => {
      try {
        return parseFilter(input);
      } catch (error) {
        context.addIssue({ code: "custom", message: error instanceof Error ? error.message : String(error) });
        return z.NEVER;
      }
    })
    .pipe(storedFilter)
    .default({})
    .meta({
      description: 'Which events: a filter as everywhere in the API, such as `{ kinds: ["*.failed"] }`.',
      form: "mapping",
      defaultText: "all",
    }),
  start: refined(startError)
    .default("now")
    .meta({ description: "Where it begins, once: `now`, `start`, a position or a time.", form: "text" }),
  headers: z
    .record(
      z.string().regex(headerName, "is not the name of a header"),
      z.string().regex(headerValue, "is not printable ASCII"),
    )
    .superRefine((headers, context) => {
      const own = Object.keys(headers).filter((name) => ownHeaders.test(name));
      if (own.length > 0) context.addIssue({ code: "custom", message: `the request itself sets ${own.join(", ")}` });
    })
    .default({})
    .meta({ description: "Headers of each request, by name.", form: "mapping", defaultText: "none" }),
  secret: refined(signingSecretError).optional().meta({
    description: "Signs requests, as Standard Webhooks does.",
    form: "`whsec_` and base64",
  }),
};

/** Which field is not one of the sink's format, and why; undefined: all are. */
export function formatError({
  format,
  cdevents,
  live,
  secret,
  template,
  filter,
}: Pick<SinkDefinition, "format" | "cdevents" | "live" | "secret" | "template" | "filter">):
  | { readonly field: string; readonly error: string }
  | undefined {
  if (cdevents === true && format !== "webhook") return { field: "cdevents", error: "only webhook sends CDEvents" };
  if (live === true && format !== "otlp") return { field: "live", error: "only otlp sends spans" };
  if (secret !== undefined && format !== "webhook") return { field: "secret", error: "only webhook signs requests" };
  const isChat = format === "slack" || format === "chat";
  if (template !== undefined && !isChat) return { field: "template", error: "only slack and chat have a template" };
  const narrowed = isChat ? (["kinds", "subjects", "outcomes"] as const).find((name) => filter[name]) : undefined;
  if (narrowed !== undefined) {
    return { field: "filter", error: `a chat gets what has failed and is good again: it has no ${narrowed}` };
  }
  const unmatched = filterError({ format, cdevents, live, filter });
  return unmatched === undefined ? undefined : { field: "filter", error: unmatched };
}

/** The body of a request for a sink. */
export const sinkRequest = z.strictObject({
  name: z.string().regex(sinkNamePattern, `expected ${sinkNameForm}`),
  ...sinkFields,
});

export const rewindRequest = z.strictObject({
  to: refined(startError).describe(
    "The next event is the first after this position, or recorded at this time or later.",
  ),
});

export const targetRequest = z.strictObject({ target: sinkFields.target });

export const parkedRequest = z.strictObject({
  position: z.string().optional().describe("Only the event at this position; all parked ones without it."),
});
