import type { SettingDefinition } from "@tapedeck/shared/service/setting-definition";
import { z } from "zod";
import { code } from "./table.ts";
import { durationText } from "./values.ts";

/** The `meta` of a schema, beside JSON Schema's keywords. */
const propertySchema = z.looseObject({
  description: z.string().min(1).optional(),
  /** Kind and unit, and the range where JSON Schema has none. */
  form: z.string().min(1).optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  default: z.unknown().optional(),
  /** Replaces `default`, which may depend on the machine. */
  defaultText: z.string().optional(),
  /** A number that stands for a duration in ms. */
  isDuration: z.literal(true).optional(),
});

type Property = z.infer<typeof propertySchema>;

const objectSchema = z.looseObject({
  properties: z.record(z.string(), propertySchema),
  required: z.array(z.string()).default([]),
});

/** A list of objects, of one shape or of several. */
const listSchema = z.looseObject({
  items: z.union([
    z.looseObject({ oneOf: z.array(objectSchema) }).transform(({ oneOf }) => oneOf),
    z.looseObject({ anyOf: z.array(objectSchema) }).transform(({ anyOf }) => anyOf),
    objectSchema.transform((shape) => [shape]),
  ]),
});

export type NestedList = { readonly title: string | undefined; readonly list: string };

/**
 * The fields of an item of a list such as `sources`: a list of those that all its shapes have, and one for each shape.
 * @throws Error for a field without a description
 */
export function nestedLists({ key, schema }: SettingDefinition): readonly NestedList[] {
  if (schema === undefined) return [];
  const json = z.toJSONSchema(schema, { io: "input", unrepresentable: "any", reused: "inline", override: withDefault });
  const shapes = listSchema.parse(json).items.map((shape) => {
    const { upstream } = shape.properties;
    const rows = Object.entries(shape.properties).map(([name, property]) => {
      const { description, form, minimum, maximum } = property;
      if (description === undefined) throw new Error(`settings without a description: ${key}[].${name}`);
      if (form === undefined) throw new Error(`settings without a form: ${key}[].${name}`);
      const range = minimum === undefined || maximum === undefined ? "" : `, ${minimum} to ${maximum}`;
      return [code(name), nestedDefault(property, shape.required.includes(name)), `${form}${range}`, description];
    });
    return { title: typeof upstream?.const === "string" ? `upstream: ${upstream.const}` : undefined, rows };
  });
  const [first, ...others] = shapes;
  if (first === undefined || others.length === 0) return shapes.map(listOf);
  const isIn = (rows: Rows, row: Rows[number]) => rows.some((other) => other.join() === row.join());
  const common = first.rows.filter((row) => others.every(({ rows }) => isIn(rows, row)));
  const own = shapes.map(({ title, rows }) => ({ title, rows: rows.filter((row) => !isIn(common, row)) }));
  return [{ title: undefined, rows: common }, ...own].map(listOf);
}

type Rows = readonly (readonly string[])[];

function listOf({ title, rows }: { readonly title: string | undefined; readonly rows: Rows }): NestedList {
  return {
    title,
    list: rows.map(([name, value, form, description]) => `* ${name} (${form}; ${value}). ${description}`).join("\n"),
  };
}

/** zod omits the defaults of transformed schemas otherwise. */
const withDefault: NonNullable<z.core.ToJSONSchemaParams["override"]> = ({ zodSchema, jsonSchema }) => {
  if (zodSchema instanceof z.ZodDefault) jsonSchema.default = zodSchema.def.defaultValue as typeof jsonSchema.default;
};

function nestedDefault({ default: value, defaultText, isDuration }: Property, isRequired: boolean): string {
  if (defaultText !== undefined) return `default ${defaultText}`;
  if (value === undefined) return isRequired ? "must be set" : "default none";
  return `default ${code(isDuration && typeof value === "number" ? durationText(value) : String(value))}`;
}
