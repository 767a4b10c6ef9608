import { mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { commandLineOf } from "@tapedeck/infra/local/server-process";
import { CommandError } from "../../../command-error.ts";
import { makeFolder } from "../../../make-folder.ts";
import { duckdbViews, viewsFile, workspaceIn } from "./duckdb-views.ts";
import { writeParquet } from "./parquet-file.ts";
import { finishDay, replaceDay, writtenDay } from "./replace-day.ts";
import type { ColumnHead, Rows } from "./rows.ts";

/** The rows that a server sends as one table of one day; without days it is an empty text. */
export type TableOfDay = { readonly name: string; readonly day: string; readonly columns: readonly ColumnHead[] };

/** What is not complete yet lies in a folder of this name, which says whose it is. */
const unfinished = /^\.unfinished-(\d+)$/;

/**
 * The folder of an export. Files are written below `.unfinished-<process>`, and those of a day take the place of earlier ones
 * together, when the day is complete: whatever stops an export leaves whole days, and if it stops while files take their places,
 * the next export goes on with that. Two exports at a time would mix theirs.
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
    const others = (await readdir(folder)).filter((name) => !name.startsWith("."));
    const workspace = workspaceIn(await readFile(join(folder, viewsFile), "utf8").catch(() => ""));
    if (others.length > 0 && workspace === undefined)
      throw new CommandError(`${folder} has other files: choose an empty folder, or that of an earlier export.`);
    const own = join(folder, `.unfinished-${process.pid}`);
    await mkdir(own, { recursive: true });
    // An export looks for others when its own folder is there, so of two at least one finds the other.
    const names = (await readdir(folder)).filter((name) => unfinished.test(name));
    for (const name of names) {
      const pid = Number(unfinished.exec(name)?.[1]);
      if (pid === process.pid || !(await commandLineOf(pid))?.includes("export")) continue;
      await rmdir(own).catch(() => {}); // an earlier process of this number has left a day there
      throw new CommandError(
        `another export writes to ${folder} (process ${pid}): wait for it, or choose another folder.`,
      );
    }
    for (const path of names.map((name) => join(folder, name))) {
      await finishDay(folder, path);
      await rm(path === own ? writtenDay(own) : path, { recursive: true, force: true });
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
    const folder = join(writtenDay(this.#unfinished), placeOf(table));
    await mkdir(folder, { recursive: true });
    this.#files.set(table, number + 1);
    return writeParquet(join(folder, `part-${number}.parquet`), rows);
  }

  /** All that was written takes the place of earlier files. A table without rows has no files of the day. */
  async finish(): Promise<void> {
    const replacements = [...this.#files].map(([table, files]) => ({ place: placeOf(table), hasFiles: files > 0 }));
    await replaceDay(this.#folder, this.#unfinished, replacements);
    this.#files.clear();
    await this.#writeViews();
  }

  /**
   * Removes what is not complete, and the folder itself if it is new and has nothing. A day that is complete and can't have its
   * place stays for the next export.
   */
  async close(): Promise<void> {
    await finishDay(this.#folder, this.#unfinished);
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
