import type { Seeded } from "@tapedeck/shared/testing/seeded";
import { document, type ParameterSchema } from "../../stack/answer-schemas.ts";
import { oneOf } from "./values.ts";

export type HttpRequest = {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
};

type Described = {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: ParameterSchema }[];
};

/** These have no parameters that could be wrong, and each call is work for minutes. */
const withoutParameters = ["post /api/v1/rebuild", "get /api/v1/backup"];

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods as Record<string, Described>).flatMap(([method, { parameters = [] }]) =>
    withoutParameters.includes(`${method} ${path}`) ? [] : [{ path, method, parameters }],
  ),
);

const forms = ["application/json", "application/x-ndjson", "text/event-stream", "application/cloudevents-batch+json"];
const contextHeaders = [
  "tapedeck-source",
  "tapedeck-session",
  "tapedeck-at",
  "tapedeck-after",
  "tapedeck-min-position",
];

/** A request of the described API, with values that its parameters take, and others. */
export function httpRequest(random: Seeded, hostile: () => string, known: Known): HttpRequest {
  const { path, method, parameters } = oneOf(random, operations);
  const query = new URLSearchParams();
  const value = (name: string, schema: ParameterSchema) =>
    random.below(2) === 0 ? hostile() : oneOf(random, [...goodValues(schema), ...(known[name] ?? []), hostile()]);
  const inQuery = random.shuffled(parameters.filter((one) => one.in === "query")).slice(0, random.below(5));
  for (const { name, schema } of inQuery) {
    const times = random.below(20) === 0 ? 101 : 1 + random.below(2);
    for (let n = 0; n < times; n += 1) query.append(name, value(name, schema));
  }
  // A stream without an end is open as long as its client.
  if (path === "/api/v1/stream" && !query.has("until")) query.set("until", "now");
  const filled = path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(hostile()) || "none");
  const raw = random.below(10) === 0 ? `&${hostileQuery(random)}` : "";
  return {
    method: method.toUpperCase(),
    path: `${filled}?${query}${raw}`,
    headers: { accept: oneOf(random, forms), ...oddHeaders(random, hostile) },
    ...(["post", "put"].includes(method) && { body: body(random, hostile) }),
  };
}

/** Values of the record, by the parameter that takes them. */
export type Known = Readonly<Record<string, readonly string[]>>;

function oddHeaders(random: Seeded, hostile: () => string): Record<string, string> {
  if (random.below(5) > 0) return {};
  const names = [...contextHeaders, "last-event-id", "grpc-timeout", "if-none-match", "accept-encoding"];
  // Node refuses to send other characters.
  return { [oneOf(random, names)]: hostile().replaceAll(/[^\x20-\x7e]/g, "?") };
}

/** What no client's library would write. */
function hostileQuery(random: Seeded): string {
  return oneOf(random, [
    "%",
    "a=%E0%A4%A",
    "__proto__=x",
    "constructor[prototype]=x",
    "from=%ED%A0%80",
    "source=%00",
    "=&=&&",
    "limit",
  ]);
}

function body(random: Seeded, hostile: () => string): string {
  const fields = [
    "name",
    "workspace",
    "roles",
    "developer",
    "days",
    "lifetime",
    "token",
    "to",
    "allWorkspaces",
    "__proto__",
  ];
  const some = random.shuffled(fields).slice(0, random.below(6));
  const values = () =>
    oneOf<unknown>(random, [hostile(), [hostile()], null, -1, 2 ** 53, 1e308, true, { a: hostile() }]);
  const object = Object.fromEntries(some.map((name) => [name, values()]));
  return oneOf(random, [JSON.stringify(object), hostile(), `[${JSON.stringify(object)}]`, "{", ""]);
}

/** The values that the description allows. */
function goodValues({ items, anyOf, ...schema }: ParameterSchema): string[] {
  const bounds = schema.type === "integer" ? [schema.minimum, schema.maximum] : [];
  return [
    ...[...(schema.enum ?? []), ...(schema.examples ?? [])].map(String),
    ...bounds.map(String),
    ...(schema.type === "boolean" ? ["true", "false"] : []),
    ...(items === undefined ? [] : goodValues(items)),
    ...(anyOf ?? []).flatMap(goodValues),
  ];
}
