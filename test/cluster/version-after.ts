import { cp, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

const copied = ["package.json", "proto", "packages", "services", "infra"];
const leftOut: readonly string[] = ["node_modules", "dist", "recordings"];

/**
 * Makes a later version: a copy of this one with one more migration, and with a view that makes its rows in another way. Its
 * first query migrates the tables and makes them anew. Returns its folder.
 */
export async function versionAfter(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const filter = (from: string) => !leftOut.includes(basename(from));
  for (const name of copied) await cp(join(root, name), join(folder, name), { recursive: true, filter });
  await installIn(folder);
  const query = join(folder, "services", "query", "src");
  await writeFile(join(query, "db", "migrations", "9999-next.ts"), migration);
  await change(join(query, "db", "migrations", "index.ts"), (text) =>
    text
      .replace("import { tables }", 'import { next } from "./9999-next.ts";\nimport { tables }')
      .replace(/\n};/, '\n  "9999-next": next,\n};'),
  );
  await change(join(query, "views", "sources", "sources.ts"), (text) => text.replace(/version: \d+/, "version: 9999"));
  return folder;
}

const migration = `import { sql } from "kysely";
import type { Migration } from "kysely/migration";

export const next: Migration = {
  async up(db) {
    await sql\`create table next (id int primary key)\`.execute(db);
  },
};
`;

async function change(file: string, edit: (text: string) => string): Promise<void> {
  const before = await readFile(file, "utf8");
  const after = edit(before);
  if (after === before) throw new Error(`${file} has nothing to change`);
  await writeFile(file, after);
}

/** Third-party packages are those of this checkout. Our own are links to sibling folders, so they have to be copied. */
async function installIn(folder: string): Promise<void> {
  const [from, to] = [join(root, "node_modules"), join(folder, "node_modules")];
  const own = ["@tapedeck", "tapedeck"];
  await mkdir(to);
  for (const name of await readdir(from)) {
    if (!own.includes(name) && (name === ".bin" || !name.startsWith(".")))
      await symlink(join(from, name), join(to, name));
  }
  for (const name of own) await cp(join(from, name), join(to, name), { recursive: true, verbatimSymlinks: true });
}
