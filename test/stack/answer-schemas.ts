import { openApiDocument } from "@tapedeck/gateway/transports/http/routes/openapi";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { expect } from "vitest";

/** The API's description as the gateway serves it. */
export const document = JSON.parse(JSON.stringify(openApiDocument())) as ApiDocument;

export const statsPaths = Object.keys(document.paths).filter((path) => path.startsWith("/api/v1/stats/"));

export type ApiDocument = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
};

export type Operation = {
  readonly parameters?: readonly Parameter[];
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, MediaType>> }>>;
};

export type Parameter = {
  readonly name: string;
  readonly in: string;
  readonly description: string;
  readonly schema: ParameterSchema;
};

export type ParameterSchema = {
  readonly type?: string;
  readonly items?: ParameterSchema;
  readonly anyOf?: readonly ParameterSchema[];
  readonly const?: string;
  readonly enum?: readonly string[];
  readonly examples?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
};

type MediaType = { readonly schema: { readonly $ref?: string }; readonly "x-itemSchema"?: { readonly $ref: string } };

const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
ajv.addSchema(closed(document) as object, "api");

/** Clients must accept undocumented fields, but here they are a mistake in the answer or the document. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const closes = "properties" in value && !("additionalProperties" in value);
  const entries = Object.entries(value).map(([name, inner]) => [name, closed(inner)]);
  return { ...Object.fromEntries(entries), ...(closes && { additionalProperties: false }) };
}

/** Fails unless the value matches the schema of this name exactly. */
export function expectIs(schema: string, value: unknown): void {
  const validate = ajv.getSchema(`api#/components/schemas/${schema}`) as ValidateFunction | undefined;
  if (validate === undefined) throw new Error(`no schema ${schema}`);
  if (validate(value)) return;
  const wrong = (validate.errors ?? []).map(({ instancePath, message, params }) => ({ instancePath, message, params }));
  expect({ schema, value, wrong: wrong.slice(0, 5) }).toEqual({ schema, value, wrong: [] });
}

/** Returns the name of the document's schema for an answer; for a stream: for each of its messages. */
export function schemaOf(path: string, status: number, type: string, method = "get"): string {
  const { schema, "x-itemSchema": item } =
    document.paths[path]?.[method]?.responses[status]?.content?.[type] ?? ({ schema: {} } as MediaType);
  const ref = item?.$ref ?? schema.$ref;
  if (ref === undefined) throw new Error(`${method} ${path} describes no ${type} with ${status}`);
  return ref.slice(ref.lastIndexOf("/") + 1);
}
