import type { RunSqlRequest, RunSqlResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { terminalText } from "@tapedeck/shared/output/terminal-text";
import type pg from "pg";
import type { ReaderLimits } from "../../db/access/limits.ts";
import { ownLogin } from "../../db/access/own-logins.ts";
import { LeakyPlansError, RolesRefusedError } from "../../db/access/workspace-logins.ts";
import { isDatabaseAway, isStatementTimeout } from "../../db/away.ts";
import { settingInteger } from "../../db/setting-integer.ts";
import type { ApiDeps, CallScope } from "../deps.ts";

/** `characters`: of a value. `all`: of an answer, of which assistants see a fraction. `error`: what an error quotes. */
const most = { rows: 1_000, columns: 100, characters: 2_000, all: 1_000_000, error: 500 };
/** What is read at a time, and so may be more than an answer has. */
const fetchedRows = 20;

export type SqlLimits = {
  readonly readers: ReaderLimits;
  /** The longest time that a call may take. */
  readonly timeoutMs: number;
};

/**
 * Runs a query as a login of its workspace, with the rights and limits of all such logins: it sees what they see. Values are
 * texts that Postgres cuts, so that no answer is large here.
 */
export function runSql(limits: SqlLimits) {
  return async (
    { workspace, database }: ApiDeps,
    { developer, sql, max_rows: rows }: RunSqlRequest,
    { signal }: CallScope,
  ): Promise<RunSqlResponse> => {
    const query = oneQuery(sql);
    const limitMs = Math.min(limits.readers.statementMs, limits.timeoutMs);
    try {
      const login = await ownLogin(database(), {
        workspace,
        developer: developer || undefined,
        limits: limits.readers,
      });
      const client = await database().connect({ login });
      const stop = () => void client.end().catch(() => {});
      signal.addEventListener("abort", stop, { once: true });
      try {
        return await rowsOf(client, query, Math.min(rows || most.rows, most.rows), limitMs);
      } finally {
        signal.removeEventListener("abort", stop);
        stop();
      }
    } catch (error) {
      // The connection is closed at the end of the call, and the error is that of a database which has gone away.
      if (isStatementTimeout(error) || (signal.aborted && isDatabaseAway(error))) throw tooSlow(limitMs, error);
      throw asRefusal(error);
    }
  };
}

const queryWords = ["select", "with", "values", "table"];

/**
 * The query without its end.
 * @throws TapedeckError invalid_argument for another statement, of which Postgres would only say that it is wrong after "for"
 */
function oneQuery(sql: string): string {
  const [, word = ""] = /^(?:\s|--.*|\/\*[\s\S]*?\*\/|\()*(\w*)/.exec(sql) ?? [];
  if (word === "" || queryWords.includes(word.toLowerCase())) return sql.slice(0, endOf(sql));
  throw invalidArgument(`this begins with ${JSON.stringify(word.slice(0, 40))}: only ${oneOnly}`, "sql");
}

/** Where the spaces and semicolons at the end begin. A regular expression tries each run of spaces, in quadratic time. */
function endOf(sql: string): number {
  let end = sql.length;
  while (end > 0 && /[\s;]/.test(sql[end - 1] as string)) end--;
  return end;
}

const oneOnly = "one query is run, which begins with SELECT, WITH or VALUES";

function tooSlow(limitMs: number, cause: unknown): TapedeckError {
  const reason = `the query took longer than ${limitMs / 1_000} s: narrow it, for example to one source or to fewer days`;
  return new TapedeckError("limit_exceeded", reason, { field: "sql" }, { cause });
}

async function rowsOf(client: pg.Client, sql: string, maxRows: number, limitMs: number): Promise<RunSqlResponse> {
  await client.query("begin transaction read only");
  await client.query(`set local statement_timeout = ${settingInteger(limitMs)}`);
  // By itself it is one whole query, or Postgres refuses it here. So it is one in parentheses, too.
  await alone(client, `declare answer no scroll cursor for ${sql}`);
  const { fields } = await client.query("fetch 0 from answer");
  await client.query("close answer");
  if (fields.length === 0) throw invalidArgument("the query has no columns", "sql");
  if (fields.length > most.columns) throw invalidArgument(`the query has more than ${most.columns} columns`, "sql");
  const names = fields.map((_, index) => `c${index}`);
  const cut = names.map(cutText).join(", ");
  await alone(
    client,
    `declare answer no scroll cursor for select ${cut} from (\n${sql}\n) answer (${names.join(", ")}) limit ${maxRows + 1}`,
  );
  const jsonOf = (text: string | null, column: number) => jsonValue(text, fields[column]?.dataTypeID);
  const json: string[] = [];
  let isMore = false;
  for (let characters = 0, hasMore = true; hasMore && !isMore; ) {
    const { rows } = await alone(client, `fetch ${fetchedRows} from answer`);
    hasMore = rows.length === fetchedRows;
    for (const values of rows) {
      const text = JSON.stringify(values.map(jsonOf));
      characters += text.length;
      isMore = json.length === maxRows || (json.length > 0 && characters > most.all);
      if (isMore) break;
      json.push(text);
    }
  }
  return {
    columns: fields.map(({ name }) => name),
    rows: json.map((text) => ({ json: text })),
    is_more: isMore,
  };
}

function cutText(name: string): string {
  const text = `${name}::text`;
  return `case when length(${text}) > ${most.characters} then left(${text}, ${most.characters}) || '…' else ${text} end`;
}

const numeric = 1700;
/** int8, int2, int4, oid, float4, float8, numeric */
const numberTypes = new Set<number | undefined>([20, 21, 23, 26, 700, 701, numeric]);

/** A number as JSON has it where that is exact, as in the HTTP API; other values are texts as Postgres writes them. */
function jsonValue(text: string | null, type: number | undefined): number | string | null {
  if (text === null || !numberTypes.has(type)) return text;
  const number = Number(text);
  const isExact = Number.isInteger(number) ? Number.isSafeInteger(number) : Number.isFinite(number);
  return isExact && (type !== numeric || decimalText(number) === withoutZeros(text)) ? number : text;
}

/** Without an exponent, as Postgres writes a numeric. */
function decimalText(number: number): string {
  const [digits = "", exponent] = String(number).split("e-");
  if (exponent === undefined) return digits;
  const [, sign = "", whole = "", fraction = ""] = /^(-?)(\d)\.?(\d*)$/.exec(digits) ?? [];
  return `${sign}0.${"0".repeat(Number(exponent) - 1)}${whole}${fraction}`;
}

/** The text of a numeric without zeros at the end of its fraction. */
function withoutZeros(text: string): string {
  if (!text.includes(".")) return text;
  let end = text.length;
  while (text[end - 1] === "0") end--;
  return text.slice(0, text[end - 1] === "." ? end - 1 : end);
}

/** A single statement: Postgres refuses several in one. */
async function alone(client: pg.Client, text: string): Promise<pg.QueryArrayResult<(string | null)[]>> {
  // pg's types lack `queryMode`.
  const query: pg.QueryArrayConfig & { readonly queryMode: "extended" } = {
    text,
    rowMode: "array",
    queryMode: "extended",
  };
  return client.query<(string | null)[]>(query);
}

/** What Postgres says of the query is for its author. It may hold recorded values, so it stands in quotes. */
function asRefusal(error: unknown): unknown {
  if (error instanceof TapedeckError || !(error instanceof Error)) return error;
  if (error instanceof LeakyPlansError || error instanceof RolesRefusedError) {
    const message = `SQL for one workspace is not possible on this Postgres: ${error.message}`;
    return new TapedeckError("forbidden", message, {}, { cause: error });
  }
  const code = "code" in error ? String(error.code) : "";
  if (code === "53300") {
    return new TapedeckError("limit_exceeded", "too many queries at once: try again in a moment", {}, { cause: error });
  }
  // Named by the function of Postgres, because its messages may be translated.
  if ("routine" in error && error.routine === "exec_parse_message")
    return invalidArgument(`there are several statements in it: only ${oneOnly}`, "sql");
  // Classes of errors that a query makes: its syntax, names, rights, values, and what it needs.
  if (!/^(0A|21|22|25|26|2B|34|38|42|53|54)/.test(code)) return error;
  const hint = "hint" in error && typeof error.hint === "string" ? ` (${error.hint})` : "";
  return invalidArgument(`Postgres refuses the query: ${quoted(error.message + hint)}`, "sql");
}

/** Assistants read it: characters that nobody sees may hide instructions in a recorded value. */
const unseen = /\p{Default_Ignorable_Code_Point}/gu;

/** Postgres repeats a value of any length in its errors. */
function quoted(text: string): string {
  const start = text.slice(0, most.error).toWellFormed();
  const line = terminalText(start).replace(unseen, "").replace(/\s+/g, " ");
  return JSON.stringify(start === text ? line : `${line}… (cut)`);
}
