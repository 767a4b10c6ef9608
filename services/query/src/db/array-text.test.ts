import { freshDatabase } from "@tapedeck/shared/testing/database";
import fc from "fast-check";
import { Client } from "pg";
import { expect, it } from "vitest";
import { arrayText } from "./array-text.ts";

const text = fc.string({ unit: "binary" }).map((value) => value.replaceAll("\0", "").toWellFormed());
const special = fc.constantFrom("", "NULL", "null", '"', "\\", '\\"', "{", "}", ",", " ", "a,b", "\n", "\t", "é", "😀");

/** Values by SQL type, as rows have them. */
const values = {
  text: fc.oneof(text, special),
  int4: fc.integer(),
  int8: fc.maxSafeInteger().map((value) => value),
  bool: fc.boolean(),
  timestamptz: fc.constantFrom("0001-01-01T00:00:00.000000Z", "2026-11-20T17:14:18.120001Z"),
  jsonb: fc.dictionary(fc.oneof(text, special), fc.oneof(text, special, fc.integer(), fc.boolean())),
  bytea: fc.uint8Array().map((value) => Buffer.from(value)),
};

it("is read by Postgres as the values that it was made of", async () => {
  await using fresh = await freshDatabase();
  const client = new Client(fresh.url);
  await client.connect();
  try {
    for (const [type, value] of Object.entries(values)) {
      const lists = fc.array(fc.option(value as fc.Arbitrary<unknown>), { maxLength: 8 });
      await fc.assert(
        fc.asyncProperty(lists, async (list) => {
          const repeated = list.flatMap((one) => [{ one }, { one }]);
          // pg's own form of the same array, which takes a member for a value that it can send as it is.
          const theirs = repeated.map(({ one }) => (type === "jsonb" && one !== null ? JSON.stringify(one) : one));
          const { rows } = await client.query(
            `select $1::${type}[] is not distinct from $2::${type}[] as same, cardinality($1::${type}[]) as count`,
            [arrayText(type, repeated, "one"), theirs],
          );
          expect(rows).toEqual([{ same: true, count: repeated.length }]);
        }),
        { numRuns: 50 },
      );
    }
  } finally {
    await client.end();
  }
});

it("takes numbers and texts that the type can't hold as the nearest ones that it can", async () => {
  const hostile = {
    int4: [2 ** 31, 2 ** 32 - 1, -(2 ** 40), Number.MAX_VALUE],
    int8: [2 ** 53, 2 ** 64, -(2 ** 64), Number.POSITIVE_INFINITY],
    text: ["a\0b", "\uD800", "x\uDC00y"],
    jsonb: [{ a: "\0", b: ["\uD800", { c: "\uDC00" }] }, "\0"],
  };
  await using fresh = await freshDatabase();
  const client = new Client(fresh.url);
  await client.connect();
  try {
    for (const [type, list] of Object.entries(hostile)) {
      const given = arrayText(
        type,
        list.map((one) => ({ one })),
        "one",
      );
      const { rows } = await client.query(`select cardinality($1::${type}[]) as count`, [given]);
      expect(rows).toEqual([{ count: list.length }]);
    }
    const { rows } = await client.query("select $1::int4[] as numbers", [
      arrayText("int4", [{ n: 2 ** 32 }, { n: -(2 ** 31) }, { n: 7 }], "n"),
    ]);
    expect(rows).toEqual([{ numbers: [2 ** 31 - 1, -(2 ** 31), 7] }]);
  } finally {
    await client.end();
  }
});
