import { mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { commandLineOf } from "@tapedeck/infra/local/server-process";
import { CommandError } from "../../../command-error.ts";
import { makeFolder } from "../../../make-folder.ts";
import { duckdbViews, viewsFile, workspaceIn } from "./duckdb-views.ts";
import { writeParquet } from "./parquet-file.ts";
import type { ColumnHead, Rows } from "./rows.ts";

/** The rows that a server sends as one table of one day; without days it is an empty text. */
export type TableOfDay = { readonly name: string; readonly day: string; readonly columns: readonly ColumnHead[] };

/** What is not complete yet lies in a folder of this name, which says whose it is. */
const unfinished = /^\.unfinished-(\d+)$/;

/**
 * The folder of an export. Files are written below `.unfinished-<process>`, and those of a day take the place of earlier ones
 * together, when the day is complete: whatever stops an export leaves whole days. Two exports at a time would mix theirs.
 */
export class ExportFolder {
  readonly #folder: string;
  readonly #unfinished: string;
  readonly #isNew: boolean;
  /** By name. */
  readonly #tables = new Map<string, TableOfDay>();
  /** How many files each table has that do not have their place yet. */
  readonly #files = new Map<TableOfDay, number>();
  #workspace: string | undefined;
  #views = "";

  private constructor(folder: string, unfinished: string, workspace: string | undefined, isNew: boolean) {
    this.#folder = folder;
    this.#unfinished = unfinished;
    this.#isNew = isNew;
    this.#workspace = workspace;
  }

  /** @throws CommandError when the folder has anything but an earlier export, or another one writes to it */
  static async open(folder: string): Promise<ExportFolder> {
    const made = await makeFolder(folder).catch((error: NodeJS.ErrnoException) => {
      const isFile = error.code === "EEXIST" || error.code === "ENOTDIR";
      throw new CommandError(
        isFile
          ? `${folder} is a file, or below one: choose a folder.`
          : `${folder} can't be made (${error.message}): choose another folder.`,
      );
    });
    const names = (await readdir(folder)).filter((name) => !name.startsWith("."));
    const workspace = workspaceIn(await readFile(join(folder, viewsFile), "utf8").catch(() => ""));
    if (names.length > 0 && workspace === undefined)
      throw new CommandError(`${folder} has other files: choose an empty folder, or that of an earlier export.`);
    const own = join(folder, `.unfinished-${process.pid}`);
    await rm(own, { recursive: true, force: true });
    await mkdir(own);
    // An export looks for others when its own folder is there, so of two at least one finds the other.
    for (const name of await readdir(folder)) {
      const pid = Number(unfinished.exec(name)?.[1] ?? process.pid);
      if (pid === process.pid) continue;
      if ((await commandLineOf(pid))?.includes("export")) {
        await rm(own, { recursive: true });
        throw new CommandError(
          `another export writes to ${folder} (process ${pid}): wait for it, or choose another folder.`,
        );
      }
      await rm(join(folder, name), { recursive: true, force: true });
    }
    return new ExportFolder(folder, own, workspace, made !== undefined);
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
    const folder = join(this.#unfinished, placeOf(table));
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
      await rename(join(this.#unfinished, placeOf(table)), place);
    }
    this.#files.clear();
    await this.#writeViews();
  }

  /** Removes what is not complete, and the folder itself if it is new and has nothing. */
  async close(): Promise<void> {
    await rm(this.#unfinished, { recursive: true, force: true });
    if (this.#isNew) await rmdir(this.#folder).catch(() => {});
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
    const written = join(this.#unfinished, viewsFile);
    await writeFile(written, views);
    await rename(written, join(this.#folder, viewsFile));
    this.#views = views;
  }
}

function placeOf({ name, day }: TableOfDay): string {
  return day === "" ? name : join(name, `day=${day}`);
}
