/** How Postgres reads an element of that type. */
type ElementText = (value: unknown) => string;

const plain: ElementText = String;
const flag: ElementText = (value) => (value === true ? "t" : "f");
const quoted: ElementText = (value) => quote(String(value));
const json: ElementText = (value) => quote(JSON.stringify(value));
const bytes: ElementText = (value) => quote(`\\x${Buffer.from(value as Uint8Array).toString("hex")}`);

/** Values that never need quotes; all others get them. */
const elementTexts: Readonly<Record<string, ElementText>> = {
  ...{ int2: plain, int4: plain, int8: plain, float4: plain, float8: plain, timestamptz: plain, bool: flag },
  jsonb: json,
  bytea: bytes,
};

/**
 * One member of all rows as the text of an array of Postgres ("{1,2,NULL}"). pg would make an array of each column, and of
 * that the same text with more steps. Neighboring rows often have the same value, which is then written once.
 */
export function arrayText<Row>(type: string, rows: readonly Row[], member: keyof Row): string {
  const textOf = elementTexts[type] ?? quoted;
  let list = "";
  let value: unknown;
  let text = "NULL";
  for (const row of rows) {
    const next = row[member];
    if (next !== value) {
      value = next;
      text = next === null || next === undefined ? "NULL" : textOf(next);
    }
    list += list === "" ? text : `,${text}`;
  }
  return `{${list}}`;
}

const special = /["\\]/g;

function quote(text: string): string {
  return `"${text.replace(special, "\\$&")}"`;
}
