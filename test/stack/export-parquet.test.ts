import { once } from "node:events";
import { watch } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Server, ServerCredentials, type ServerWritableStream } from "@grpc/grpc-js";
import type { ExportTablesRequest, ExportTablesResponse, TableColumn } from "@tapedeck/proto/tapedeck/v1/tables";
import { TapedeckService } from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { zstd } from "@tapedeck/shared/log/batch/zstd";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { exportTables } from "tapedeck/commands/export/parquet/run";
import { startCli } from "tapedeck/testing/cli";
import { urlOf } from "tapedeck/testing/recorder";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { openDuckDb } from "../docs/duckdb.ts";

// `tapedeck export --parquet` with a server that sends what a real one would not, and ends when it should not.
// test/docs/sql-answers.test.ts has a real one.

type Message = NonNullable<ExportTablesResponse["body"]>;
type Value = string | number | bigint | boolean | null;

const [first, second] = ["2026-01-30", "2026-01-31"];
const cleanup = new AsyncDisposableStack();
let url: string;
/** What the server sends. */
let script: readonly Message[] = [];
/** What it does then with the call. */
let then: "ends" | "breaks off" | "stays" = "ends";
let folder: string;

beforeAll(async () => {
  const server = new Server();
  server.addService(TapedeckService, {
    exportTables(call: ServerWritableStream<ExportTablesRequest, ExportTablesResponse>) {
      for (const body of script) call.write({ body });
      if (then === "stays") return;
      if (then === "breaks off")
        call.emit("error", { code: 14, details: "the gateway is stopped: try again in a moment" });
      else call.end();
    },
  } as never);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  cleanup.defer(() => server.forceShutdown());
  url = urlOf(`127.0.0.1:${port}`);
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  cleanup.defer(() => void vi.restoreAllMocks());
});
afterAll(() => cleanup.disposeAsync());

beforeEach(async () => {
  folder = join(cleanup.use(await temporaryFolder()).folder, "tables");
  then = "ends";
});

/** Fields as Postgres' binary COPY writes them. */
function rowOf(columns: readonly TableColumn[], values: readonly Value[]): Buffer {
  const count = Buffer.alloc(2);
  count.writeInt16BE(values.length);
  const fields = values.flatMap((value, index) => {
    const bytes = value === null ? Buffer.alloc(0) : bytesOf(columns[index]?.type ?? "", value);
    const length = Buffer.alloc(4);
    length.writeInt32BE(value === null ? -1 : bytes.length);
    return [length, bytes];
  });
  return Buffer.concat([count, ...fields]);
}

function bytesOf(type: string, value: NonNullable<Value>): Buffer {
  const bytes = Buffer.alloc(type === "boolean" ? 1 : type === "int32" ? 4 : 8);
  if (type === "text" || type === "json") return Buffer.from(String(value));
  if (type === "boolean") bytes.writeInt8(value ? 1 : 0);
  else if (type === "int32") bytes.writeInt32BE(Number(value));
  else if (type === "double") bytes.writeDoubleBE(Number(value));
  else bytes.writeBigInt64BE(BigInt(value as bigint));
  return bytes;
}

const rowsAtOnce = 2_500;

type Table = { readonly columns: readonly TableColumn[]; readonly rows: readonly (readonly Value[])[] };

/** An older Node of the server has nothing to compress rows with. */
function rowsMessage(rows: Buffer, isCompressed: boolean): Message {
  if (!isCompressed || zstd.compress === undefined) return { $case: "rows", value: rows };
  return { $case: "compressed_rows", value: { zstd: Buffer.from(zstd.compress(rows)), size: rows.length } };
}

function tableMessages(table: string, day: string, { columns, rows }: Table, workspace = "acme"): Message[] {
  const parts = Array.from({ length: Math.ceil(rows.length / rowsAtOnce) }, (_, part) =>
    rows.slice(part * rowsAtOnce, (part + 1) * rowsAtOnce).map((row) => rowOf(columns, row)),
  );
  return [
    { $case: "begin", value: { table, day, columns: [...columns], workspace } },
    ...parts.map((part, index) => rowsMessage(Buffer.concat(part), index % 2 === 0)),
    { $case: "end", value: { rows: BigInt(rows.length) } },
  ];
}

const ids = (...names: readonly string[]): Table => ({
  columns: [{ name: "id", type: "text" }],
  rows: names.map((name) => [name]),
});
const done = (day: string): Message => ({ $case: "done", value: { day } });

/** A day of an export with these ids of operations and of loops. */
const dayOf = (day: string, operations: Table, loops = ids()): Message[] => [
  ...tableMessages("operations", day, operations),
  ...tableMessages("loops", day, loops),
  done(day),
];

const run = (from = first, to = second) => exportTables({ url, parquet: folder, from, to });
const refusal = (from = first, to = second) =>
  run(from, to).then(
    () => "exported",
    (error: Error) => error.message,
  );

/** The views need all tables of a real server. */
const filesOf = (table: string) =>
  `read_parquet('${folder}/${table}/day=*/*.parquet', union_by_name = true, hive_types = {'day': date})`;

async function idsIn(table: string): Promise<readonly (string | null)[]> {
  await using duckdb = await openDuckDb();
  return (await duckdb.rows(`select id || ' ' || day from ${filesOf(table)} order by 1`)).rows.flat();
}

const start2000 = Date.UTC(2000, 0, 1);

const types = ["text", "text", "json", "int32", "int64", "double", "boolean", "timestamp", "text", "int64"];
const allTypes = types.map((type, index) => ({ name: `c${index}`, type }));
const micros = (time: string) => BigInt(Date.parse(time) - start2000) * 1_000n + 7n;
const ofAllTypes: Value[][] = Array.from({ length: 6_000 }, (_, n) => [
  ...[`id-${n}`, ["", "é🙂", "it's\n\u0000"][n % 3] ?? "", `{"n": ${n % 5}}`, n - 3_000, 2n ** 53n + BigInt(n)],
  ...[
    n / 7,
    n % 2 === 0,
    micros("1969-12-31T23:59:59Z") + BigInt(n),
    ["x", "y"][n % 2] ?? "",
    BigInt(n - 3_000) * 500_000n,
  ],
]);
const since1970 = (value: Value) => (value === null ? null : BigInt(value as bigint) + BigInt(start2000) * 1_000n);

it.each([
  ["without nulls", []],
  // A column's first null may come late.
  ["with nulls", [["last", null, null, null, null, null, null, null, null, null]]],
  [
    "of nulls alone in a column",
    ofAllTypes.map((row) => row.map((value, index) => (index === 0 ? `${value}-null` : null))),
  ],
])("values of all types, %s, are the same in DuckDB", async (_, more) => {
  const rows = more.length > 1 ? more : [...ofAllTypes, ...more];
  script = [...tableMessages("operations", first, { columns: allTypes, rows }), done(first)];
  await run(first, first);
  await using duckdb = await openDuckDb();
  const { rows: found } = await duckdb.rows(
    `select c0, c1, c2, c3, c4, c5, c6, epoch_us(c7), c8, c9 from ${filesOf("operations")}
      order by try_cast(split_part(c0, '-', 2) as integer) nulls last`,
  );
  const expected = rows.map((row) => row.with(7, since1970(row[7] ?? null)).map((value) => value && String(value)));
  const comparable = (all: readonly (readonly unknown[])[]) =>
    all.map((row) =>
      row.map((value) => (value === 0 || value === 0n || value === false || value === "" ? String(value) : value)),
    );
  expect(comparable(found)).toEqual(comparable(expected));
  const { rows: described } = await duckdb.rows(`describe select * from ${filesOf("operations")}`);
  expect(described.map(([, type]) => type)).toEqual([
    ...["VARCHAR", "VARCHAR", "JSON", "INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMP WITH TIME ZONE", "VARCHAR"],
    ...["BIGINT", "DATE"],
  ]);
});

it("the bounds of times are in the files, without nulls", async () => {
  const times = ["2026-01-30T12:00:00Z", null, "2026-01-30T09:00:00Z", "2026-01-30T10:00:00Z"];
  const rows = times.map((time, n) => [String(n), time === null ? null : micros(time)]);
  const columns = [
    { name: "id", type: "text" },
    { name: "at", type: "timestamp" },
  ];
  script = [...tableMessages("operations", first, { columns, rows }), done(first)];
  await run(first, first);
  await using duckdb = await openDuckDb();
  const { rows: found } = await duckdb.rows(
    `select stats_min_value, stats_max_value from parquet_metadata('${folder}/operations/day=*/*.parquet') where path_in_schema = 'at'`,
  );
  expect(found).toEqual([["2026-01-30 09:00:00.000007+00", "2026-01-30 12:00:00.000007+00"]]);
});

it("an export replaces its days, and leaves the others", async () => {
  script = [...dayOf(first, ids("a", "b"), ids("l")), ...dayOf(second, ids("c"), ids("m"))];
  await run();
  expect(await idsIn("operations")).toEqual([`a ${first}`, `b ${first}`, `c ${second}`]);
  expect(await idsIn("loops")).toEqual([`l ${first}`, `m ${second}`]);
  script = dayOf(second, ids("d"));
  await run(second, second);
  expect(await idsIn("operations")).toEqual([`a ${first}`, `b ${first}`, `d ${second}`]);
  expect(await idsIn("loops")).toEqual([`l ${first}`]);
});

it("a table without any rows is an empty view", async () => {
  script = dayOf(first, ids("a"));
  await run(first, first);
  const views = await readFile(join(folder, "views.sql"), "utf8");
  expect(views).toContain('view tapedeck.loops as\n  select null::varchar as "id", null::date as day where false;');
});

it("an export that is broken off leaves whole days, and says how to go on", async () => {
  script = dayOf(second, ids("earlier"));
  await run(second, second);
  script = [...dayOf(first, ids("a")), ...tableMessages("operations", second, ids("b"))];
  then = "breaks off";
  expect(await refusal()).toBe(
    `the gateway is stopped: try again in a moment: the days ${first} to ${first} are complete. Go on with --from ${second} --to ${second}.`,
  );
  expect(await idsIn("operations")).toEqual([`a ${first}`, `earlier ${second}`]);
  expect(await readdir(folder)).toEqual(["operations", "views.sql"]);
  script = [];
  expect(await refusal()).toContain(`no day in ${folder} was replaced.`);
});

it("an export whose connection breaks off behind its last day is whole", async () => {
  script = [...dayOf(first, ids("a")), ...dayOf(second, ids("b"))];
  then = "breaks off";
  expect(await refusal()).toBe("exported");
  expect(await idsIn("operations")).toEqual([`a ${first}`, `b ${second}`]);
});

it("an export that ends before its last day is not taken for whole", async () => {
  script = dayOf(first, ids("a"));
  expect(await refusal()).toContain(`closed the connection: the days ${first} to ${first} are complete.`);
  const [begin, rows] = tableMessages("operations", first, ids("a", "b"));
  const end: Message = { $case: "end", value: { rows: 3n } };
  script = [begin, rows, end, done(first)].flatMap((message) => message ?? []);
  expect(await refusal(first, first)).toContain("rows of operations are missing");
});

it("a folder with anything else stays as it is", async () => {
  await mkdir(folder);
  await writeFile(join(folder, "thesis.txt"), "years of work");
  script = dayOf(first, ids("a"));
  expect(await refusal(first, first)).toBe(
    `${folder} has other files: choose an empty folder, or that of an earlier export.`,
  );
  expect(await readFile(join(folder, "thesis.txt"), "utf8")).toBe("years of work");
});

it("one export writes to a folder at a time, and one that is stopped or killed leaves nothing of a day", async () => {
  script = tableMessages("operations", first, ids("a"));
  then = "stays";
  const cwd = cleanup.use(await temporaryFolder()).folder;
  await using cli = startCli(["export", "--parquet", folder, "--from", first, "--to", first, "--url", url], { cwd });
  await until(async () => (await readdir(folder)).includes("views.sql"), { message: "the export to have begun" });
  expect(await refusal()).toContain(`another export writes to ${folder} (process ${cli.child.pid})`);
  cli.child.kill("SIGTERM");
  expect(await cli.ended).toBe(1);
  expect(cli.stderr()).toContain(`stopped: no day in ${folder} was replaced.`);
  expect(await readdir(folder)).toEqual(["views.sql"]);
  await mkdir(join(folder, `.unfinished-${cli.child.pid}`, "operations"), { recursive: true });
  then = "ends";
  script = dayOf(first, ids("a"));
  await run(first, first);
  expect(await readdir(folder)).toEqual(["operations", "views.sql"]);
});

it("an export that is killed while it replaces a day leaves the rest of that to the next one", async () => {
  const tables = Array.from({ length: 500 }, (_, index) => `t${index}`);
  const messages = (id: string) => tables.flatMap((name) => tableMessages(name, first, ids(id)));
  const contents = () =>
    Promise.all(tables.map((name) => readFile(join(folder, name, `day=${first}`, "part-0.parquet"), "latin1")));
  script = [...messages("earlier"), done(first)];
  await run(first, first);
  const replaced = once(
    cleanup.adopt(watch(join(folder, "t0")), (watcher) => watcher.close()),
    "change",
  );
  script = [...messages("later"), done(first)];
  then = "stays";
  const cwd = cleanup.use(await temporaryFolder()).folder;
  await using cli = startCli(["export", "--parquet", folder, "--from", first, "--to", second, "--url", url], { cwd });
  // The first file gets its place, and 499 others are to follow.
  await replaced;
  cli.child.kill("SIGKILL");
  await cli.ended;
  console.error(
    "MIXED",
    new Set(await contents().catch(() => ["missing"])).size,
    await readdir(folder).then((n) => n.filter((x) => x.startsWith("."))),
  );
  then = "ends";
  script = dayOf(second, ids("a"));
  await run(second, second);
  const found = new Set(await contents());
  expect(found.size).toBe(1);
  expect([...found][0]).toContain("later");
  expect((await readdir(folder)).filter((name) => name.startsWith("."))).toEqual([]);
});

it("a day that can't have its place has it after the next export, also one of the same process", async () => {
  script = dayOf(first, ids("earlier"));
  await run(first, first);
  await writeFile(join(folder, "loops"), "a file");
  script = dayOf(first, ids("later"), ids("l"));
  expect(await refusal(first, first)).toContain("not a directory");
  await rm(join(folder, "loops"));
  script = dayOf(second, ids("a"));
  await run(second, second);
  expect(await idsIn("operations")).toEqual([`a ${second}`, `later ${first}`]);
  expect(await idsIn("loops")).toEqual([`l ${first}`]);
  expect(await readdir(folder)).toEqual(["loops", "operations", "views.sql"]);
});

it("an export of which nothing is left leaves no folder, and a file is no folder", async () => {
  script = [];
  expect(await refusal()).toContain("closed the connection");
  await expect(readdir(folder)).rejects.toThrow("ENOENT");
  await writeFile(folder, "a file");
  expect(await refusal()).toBe(`${folder} is a file, or below one: choose a folder.`);
  folder = join(folder, "x");
  expect(await refusal()).toBe(`${folder} is a file, or below one: choose a folder.`);
  // It takes no folder, and says that it is not there.
  folder = "/proc/tables";
  expect(await refusal()).toMatch(/^\/proc\/tables can't be made \(ENOENT: .*\): choose another folder\.$/);
});

it("tables of another workspace do not get into a folder", async () => {
  script = dayOf(first, ids("a"));
  await run(first, first);
  script = [...tableMessages("operations", first, ids("b"), "globex"), done(first)];
  expect(await refusal(first, first)).toContain("has the tables of the workspace acme, and these are of globex");
  expect(await idsIn("operations")).toEqual([`a ${first}`]);
});

it.each(["../operations", "Operations", "operations/x", ""])("a table named %j is refused", async (name) => {
  script = [...tableMessages(name, first, ids("a")), done(first)];
  expect(await refusal(first, first)).toContain("the server sent a table that is none");
});

it("a type that only a newer version knows is named", async () => {
  script = [...tableMessages("operations", first, { columns: [{ name: "id", type: "uuid" }], rows: [] }), done(first)];
  expect(await refusal(first, first)).toContain("this version can't read operations.id: use a newer tapedeck");
});

it.each([
  [["--from", second, "--to", first], `--to (${first}) is before --from (${second}).`],
  [["--from", "2999-01-01"], "--from (2999-01-01) is after today ("],
  [[], "--parquet needs --from, the first day"],
  [["--from", "2026-02-31"], "Expected a day, such as 2026-01-31."],
  [["01KE3M9Z6Q4W8T2V5X7Y9A1B3C", "--from", first], "--parquet exports tables, and no single sessions"],
  [["--from", first, "-o", "file"], "cannot be used with option"],
])("export --parquet with %j says what is wrong", async (words, message) => {
  const cwd = cleanup.use(await temporaryFolder()).folder;
  await using cli = startCli(["export", "--parquet", folder, ...words], { cwd });
  expect(await cli.ended).toBe(1);
  expect(cli.stderr()).toContain(message);
});
