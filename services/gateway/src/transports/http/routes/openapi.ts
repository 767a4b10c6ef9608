import { type ErrorCode, httpStatusOf } from "@tapedeck/shared/errors/errors";
import { z } from "zod";
import { answers } from "../../../apis/tapedeck/answers.ts";
import { detailSchemas, type JsonSchema } from "../../../apis/tapedeck/detail-schemas.ts";
import {
  answerHeaders,
  type DescribedAnswer,
  type DescribedRoute,
  json,
  routes,
  type SchemaName,
} from "./openapi-routes.ts";

/** The HTTP API's description, OpenAPI 3.1, made of the schemas that serve it. */
export function openApiDocument(described: readonly DescribedRoute[] = Object.values(routes)): JsonSchema {
  return {
    openapi: "3.1.0",
    info: { title: "Tapedeck", version: "1", license: { name: "Apache-2.0", identifier: "Apache-2.0" }, description },
    // Relative: where the description came from.
    servers: [{ url: "/" }],
    security: [{}, { token: [] }],
    tags: tags.map(({ paths: _, ...tag }) => tag),
    paths: Object.fromEntries(
      [...Map.groupBy(described, ({ path }) => path)].map(([path, ofPath]) => [
        path,
        Object.fromEntries(ofPath.map((route) => [route.method ?? "get", operation(route)])),
      ]),
    ),
    components: {
      schemas: schemas(),
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "Required with the setting `auth: tokens`." },
      },
    },
  };
}

const description = `Tapedeck records what development tools do in one log, and plays it back.

A **position** such as \`383600-t3k9x2\` says where an event is in the log. It is opaque, and sorts as text as the log does. Keep the position of the last event that you have
handled and pass it as \`after\`: you get the next events, each once, on any transport. Filters are repeated parameters:
different ones are ANDed, values of one ORed. \`source\`, \`session\`, \`at\`, \`after\` and \`min_position\` may also be the
headers \`tapedeck-source\`, \`tapedeck-session\`, \`tapedeck-at\`, \`tapedeck-after\` and \`tapedeck-min-position\`.

Names are lowerCamelCase, times are RFC 3339, and numbers are JSON numbers, 64-bit ones too; positions are text. In a \`state\`,
which is the upstream's own, 64-bit numbers are strings. Expect fields and kinds of events that are not described here. Unknown parameters are errors. A method that a path does not have is answered with 405.`;

/** What a reader looks for, in the order of the page. */
const tags = [
  {
    name: "Record",
    description: "What was recorded: sources, sessions, operations, search, state.",
    paths: /^\/api\/v1\/(sources|sessions|operations|search|compare|state|status)$/,
  },
  { name: "Events", description: "Events as they are and as they come.", paths: /^\/api\/v1\/(events|stream|ws)$/ },
  { name: "Statistics", description: "Durations, failures, waits.", paths: /^\/api\/v1\/stats\// },
  { name: "Administration", description: "Tokens, audit, backups, probes.", paths: /./ },
] as const;

function tagOf(path: string): string {
  return tags.find(({ paths }) => paths.test(path))?.name ?? "";
}

const meanings: Readonly<Record<ErrorCode, string>> = {
  out_of_range: "what follows the position is no longer available, or was lost; go on after `earliest`",
  position_future: "the position is beyond the log's end, which is `latest`",
  position_foreign: "the position is from another log",
  unknown_source: "there is no such source",
  unknown_session: "the source has no such session",
  before_first: "the source or session began later, at `earliest`",
  not_found: "there is nothing at this path",
  source_taken: "another tap holds the source",
  ambiguous_source: "several sources match, see `choices`",
  invalid_argument: "the parameter `field` is invalid or unknown",
  upstream_away: "the upstream, or the tap that is connected to it, is unavailable",
  not_ready: "a service behind the gateway is unavailable or behind: try again",
  refused_dangerous: "the request would crash the upstream",
  unauthenticated: "there is no valid token",
  forbidden: "the token does not permit the request, or Host or Origin is foreign",
  limit_exceeded: "the request is over a limit",
  internal: "an internal error; its cause is in the gateway's log",
};

function operation(route: DescribedRoute): JsonSchema {
  const {
    method = "get",
    path,
    parameters,
    inPath = {},
    headers = {},
    body,
    answers,
    errors,
    isOpen,
    ...description
  } = route;
  const described = [
    ...Object.entries(inPath).map(([name, what]) => ({ ...parameter("path", name, what), required: true })),
    ...(parameters === undefined ? [] : inQuery(parameters)),
    ...Object.entries(headers).map(([name, what]) => parameter("header", name, what)),
  ];
  return {
    tags: [tagOf(path)],
    operationId: method + path.replace("/api/v1", "").replace(/\W+(\w?)/g, (_, letter: string) => letter.toUpperCase()),
    ...description,
    ...(isOpen === true && { security: [] }),
    ...(described.length > 0 && { parameters: described }),
    ...(body !== undefined && { requestBody: { required: true, content: { [json]: { schema: inBody(body) } } } }),
    responses: {
      ...Object.fromEntries(Object.entries(answers).map(([status, of]) => [status, answer(of)])),
      ...refusals(errors),
    },
  };
}

function parameter(where: "path" | "header", name: string, description: string): JsonSchema {
  return { name, in: where, description, schema: { type: "string" } };
}

function inBody(body: z.ZodType): JsonSchema {
  const { $schema: _, ...schema } = z.toJSONSchema(body, { io: "input" });
  return schema;
}

function inQuery(parameters: z.ZodObject): JsonSchema[] {
  const { properties = {} } = z.toJSONSchema(parameters, { io: "output" });
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = property as JsonSchema;
    return { name, in: "query", description, schema };
  });
}

function answer({ description, headers = [], content = {} }: DescribedAnswer): JsonSchema {
  const types = Object.entries(content).map(([type, of]) => {
    if (typeof of === "string") return [type, { schema: refTo(of) }];
    return [type, { schema: { type: "string", description: of.description }, "x-itemSchema": refTo(of.lines) }];
  });
  return {
    description,
    ...(headers.length > 0 && {
      headers: Object.fromEntries(headers.map((name) => [name, header(answerHeaders[name])])),
    }),
    ...(types.length > 0 && { content: Object.fromEntries(types) }),
  };
}

function header(description: string, type = "string"): JsonSchema {
  return { description, schema: { type } };
}

/** By status, with the codes that it stands for. */
function refusals(codes: readonly ErrorCode[]): JsonSchema {
  const statuses = Map.groupBy(codes, httpStatusOf);
  return Object.fromEntries(
    [...statuses].map(([status, ofStatus]) => [
      status,
      {
        description: ofStatus.map((code) => `\`${code}\`: ${meanings[code]}.`).join(" "),
        ...([429, 503].includes(status) && { headers: { "retry-after": header("Seconds to wait.", "integer") } }),
        content: { [json]: { schema: refTo("Error") } },
      },
    ]),
  );
}

function refTo(name: SchemaName | "Detail"): JsonSchema {
  return { $ref: refOf(name) };
}

function refOf(name: string): string {
  return `#/components/schemas/${name}`;
}

function schemas(): JsonSchema {
  const named = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(answers)) named.add(schema, { id });
  // Answers are described by input schemas, which allow undescribed fields.
  const { schemas: ofAnswers } = z.toJSONSchema(named, { io: "input", uri: refOf });
  const details = detailSchemas();
  return {
    ...Object.fromEntries(
      Object.entries(ofAnswers).map(([name, { $schema: _, $id: __, ...schema }]) => [name, schema]),
    ),
    Detail: {
      description: "Details of an event. The kind of the event determines which of these it has.",
      anyOf: Object.keys(details).map((name) => ({ $ref: refOf(name) })),
    },
    ...details,
  };
}
