import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CommandError } from "../../../command-error.ts";
import { duckdbViews, viewsFile, workspaceIn } from "./duckdb-views.ts";
import { writeParquet } from "./parquet-file.ts";
import type { ColumnHead, Rows } from "./rows.ts";

/** The rows that a server sends as one table of one day; without days it is an empty text. */
export type TableOfDay = { readonly name: string; readonly day: string; readonly columns: readonly ColumnHead[] };

/** What is not complete yet lies here. */
const unfinished = ".unfinished";

/**
 * The folder of an export. Files are written below `.unfinished`, and those of a day take the place of earlier ones together,
 * when the day is complete: whatever stops an export leaves whole days.
 */
export class ExportFolder {
  readonly #folder: string;
  /** By name. */
  readonly #tables = new Map<string, TableOfDay>();
  /** How many files each table has that do not have their place yet. */
  readonly #files = new Map<TableOfDay, number>();
  #workspace: string | undefined;
  #views = "";

  private constructor(folder: string, workspace: string | undefined) {
    this.#folder = folder;
    this.#workspace = workspace;
  }

  /** @throws CommandError when the folder has anything but an earlier export */
  static async open(folder: string): Promise<ExportFolder> {
    await mkdir(folder, { recursive: true });
    const names = (await readdir(folder)).filter((name) => !name.startsWith("."));
    const workspace = workspaceIn(await readFile(join(folder, viewsFile), "utf8").catch(() => ""));
    if (names.length > 0 && workspace === undefined)
      throw new CommandError(`${folder} has other files: choose an empty folder, or that of an earlier export.`);
    await rm(join(folder, unfinished), { recursive: true, force: true });
    await mkdir(join(folder, unfinished));
    return new ExportFolder(folder, workspace);
  }

  /** @throws CommandError when the folder has the rows of another workspace */
  async begin(table: TableOfDay, workspace: string): Promise<void> {
    if (this.#workspace === undefined) {
      this.#workspace = workspace;
      // From here on the folder is that of an export.
      await this.#writeViews();
    }
    if (this.#workspace !== workspace) {
      throw new CommandError(
        `${this.#folder} has the tables of the workspace ${this.#workspace}, and these are of ${workspace}: choose another folder.`,
      );
    }
    this.#tables.set(table.name, table);
    this.#files.set(table, 0);
  }

  /** Writes rows of a table that has begun, as a file of its own. Resolves with its size. */
  async write(table: TableOfDay, rows: Rows): Promise<number> {
    const number = this.#files.get(table) ?? 0;
    const folder = join(this.#folder, unfinished, placeOf(table));
    await mkdir(folder, { recursive: true });
    this.#files.set(table, number + 1);
    return writeParquet(join(folder, `part-${number}.parquet`), rows);
  }

  /** All that was written takes the place of earlier files. A table without rows has no files of the day. */
  async finish(): Promise<void> {
    for (const [table, files] of this.#files) {
      const place = join(this.#folder, placeOf(table));
      await rm(place, { recursive: true, force: true });
      if (files === 0) continue;
      await mkdir(join(this.#folder, table.name), { recursive: true });
      // An empty folder can be replaced.
      await rename(join(this.#folder, unfinished, placeOf(table)), place);
    }
    this.#files.clear();
    await this.#writeViews();
  }

  /** Removes what is not complete. */
  async close(): Promise<void> {
    await rm(join(this.#folder, unfinished), { recursive: true, force: true });
  }

  async #writeViews(): Promise<void> {
    const tables = await Promise.all(
      [...this.#tables.values()].map(async ({ name, day, columns }) => {
        const files = await readdir(join(this.#folder, name)).catch(() => []);
        return { name, columns, hasDays: day !== "", hasFiles: files.length > 0 };
      }),
    );
    const views = duckdbViews(this.#workspace ?? "", tables);
    if (views === this.#views) return;
    const written = join(this.#folder, unfinished, viewsFile);
    await writeFile(written, views);
    await rename(written, join(this.#folder, viewsFile));
    this.#views = views;
  }
}

function placeOf({ name, day }: TableOfDay): string {
  return day === "" ? name : join(name, `day=${day}`);
}
