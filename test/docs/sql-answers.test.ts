import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type AllRecordings, startAllRecordings } from "../stack/all-recordings.ts";
import { questionsIn, tableOf, withAnswers } from "./sql-answers.ts";

// The record behind the answers of docs/sql.md. After a change of queries or recordings: `npm run docs:answers`
// regenerates them.

const page = join(import.meta.dirname, "../../docs/sql.md");

let all: AllRecordings;
beforeAll(async () => {
  all = await startAllRecordings();
  await all.play();
});
afterAll(() => all[Symbol.asyncDispose]());

it("the answers in docs/sql.md are those to its questions", async () => {
  const text = await readFile(page, "utf8");
  const questions = questionsIn(text);
  expect(questions.length).toBeGreaterThanOrEqual(15);
  const client = new Client({
    connectionString: all.stack.database,
    types: { getTypeParser: () => (value: unknown) => value },
  });
  await client.connect();
  try {
    await client.query("set timezone = 'UTC'");
    const answers: string[] = [];
    for (const { title, query } of questions) {
      const { fields, rows } = await client.query<(string | null)[]>({ text: query, rowMode: "array" });
      expect(rows, title).not.toEqual([]);
      answers.push(
        tableOf(
          fields.map(({ name }) => name),
          rows,
        ),
      );
    }
    await expect(withAnswers(text, answers)).toMatchFileSnapshot(page);
  } finally {
    await client.end();
  }
});
