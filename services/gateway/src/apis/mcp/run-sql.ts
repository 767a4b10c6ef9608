import { z } from "zod";
import { Answer, counted, tokensField } from "./answer.ts";
import { outline } from "./outline.ts";
import { addRows } from "./rows.ts";
import { tool } from "./tool.ts";

export const runSql = tool({
  name: "run_sql",
  title: "Ask in SQL",
  description:
    "Runs one read-only query (Postgres) on the tables of the record, for what no other tool counts. Tables and views: sources, sessions, events, operations, " +
    "loops, loop_times, finished_loops, failures, build_times, time_to_green, flaky_artifacts, slowest_artifacts, command_times, pod_runs … " +
    "Their columns: select table_name, column_name, data_type from information_schema.columns where table_schema = 'tapedeck'.",
  input: z.strictObject({
    sql: z.string().min(1).max(20_000).describe("One `select`, or one with `with`."),
    limit: z.int().min(1).max(1_000).default(100).describe("The most rows."),
    tokens: tokensField,
  }),
  async answer({ sql, limit, tokens }, { apis, context }) {
    const { columns, rows, isMore, position } = await apis.tapedeck.sql(context, { sql, maxRows: limit });
    const answer = new Answer(tokens);
    const names = outline(columns, answer.left / 2);
    answer.add(names.json);
    if (!names.isWhole) answer.leaveOut("names of columns. Ask for fewer columns.");
    if (rows.length === 0) answer.add("No row.");
    addRows(
      answer,
      rows,
      (count) => `${count} of ${counted(rows.length, "row")}. Ask with more \`tokens\`, or for less.`,
    );
    const larger = rows.length < limit ? "for fewer columns" : "with a larger `limit`";
    if (isMore) answer.leaveOut(`rows after the first ${rows.length}. Ask ${larger}, or sum them up.`);
    const again = "a query is always of now. The tables have at least this position.";
    return answer.end({ position, again });
  },
});
