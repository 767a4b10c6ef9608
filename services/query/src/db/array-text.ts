import { ownValue } from "@tapedeck/shared/own-value";
import { text } from "./text.ts";

/** How Postgres reads an element of that type. */
type ElementText = (value: unknown) => string;

const plain: ElementText = String;
/** A number beyond the type's bounds is the nearest one within. */
const whole =
  (least: number, largest: number): ElementText =>
  (value) =>
    String(Math.min(Math.max(Number(value), least), largest));
const flag: ElementText = (value) => (value === true ? "t" : "f");
const quoted: ElementText = (value) => quote(text(String(value)));
const json: ElementText = (value) => quote(JSON.stringify(value, cleanText));
const bytes: ElementText = (value) => quote(`\\x${Buffer.from(value as Uint8Array).toString("hex")}`);

/** Values that never need quotes; all others get them. */
const elementTexts: Readonly<Record<string, ElementText>> = {
  float4: plain,
  float8: plain,
  timestamptz: plain,
  bool: flag,
  int2: whole(-(2 ** 15), 2 ** 15 - 1),
  int4: whole(-(2 ** 31), 2 ** 31 - 1),
  // What is read is a number, too.
  int8: whole(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  jsonb: json,
  bytea: bytes,
};

function cleanText(_name: string, value: unknown): unknown {
  return typeof value === "string" ? text(value) : value;
}

/**
 * One member of all rows as the text of an array of Postgres ("{1,2,NULL}"). pg would make an array of each column, and of
 * that the same text with more steps. Neighboring rows often have the same value, which is then written once.
 */
export function arrayText<Row>(type: string, rows: readonly Row[], member: keyof Row): string {
  const textOf = ownValue(elementTexts, type) ?? quoted;
  let list = "";
  let value: unknown;
  let element = "NULL";
  for (const row of rows) {
    const next = row[member];
    if (next !== value) {
      value = next;
      element = next === null || next === undefined ? "NULL" : textOf(next);
    }
    list += list === "" ? element : `,${element}`;
  }
  return `{${list}}`;
}

const special = /["\\]/g;

function quote(text: string): string {
  return `"${text.replace(special, "\\$&")}"`;
}
