import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The files of a table of one day, in a folder of their own below that of the export. */
export type Replacement = { readonly place: string; readonly hasFiles: boolean };

/** A day lies in the first folder while its files are written, and in the second one from when they take their places on. */
const written = "day";
const complete = "complete";
/** Within the second one: what takes which place, and the files that were there before. No table has such a name. */
const list = "replacements.json";
const earlier = ".earlier";
const isPlace = /^[a-z][a-z0-9_]*(\/day=\d{4}-\d{2}-\d{2})?$/;

/** Where the files of a day are written, below the unfinished export. */
export function writtenDay(unfinished: string): string {
  return join(unfinished, written);
}

/**
 * The files of a day take the places of earlier ones. Many folders can't be renamed at once: what stops this in the middle
 * leaves a list, by which `finishDay` goes on.
 */
export async function replaceDay(
  folder: string,
  unfinished: string,
  replacements: readonly Replacement[],
): Promise<void> {
  const day = writtenDay(unfinished);
  await mkdir(day, { recursive: true });
  await writeFile(join(day, list), JSON.stringify(replacements));
  await rename(day, join(unfinished, complete));
  await finishDay(folder, unfinished);
}

/** Goes on with a day whose files have begun to take their places; does nothing where there is none. */
export async function finishDay(folder: string, unfinished: string): Promise<void> {
  const day = join(unfinished, complete);
  const text = await unlessMissing(readFile(join(day, list), "utf8"));
  for (const { place, hasFiles } of JSON.parse(text ?? "[]") as readonly Replacement[]) {
    if (!isPlace.test(place)) throw new Error(`${JSON.stringify(place)} is no place of a table`);
    const [from, to, aside] = [join(day, place), join(folder, place), join(day, earlier, place)];
    if (hasFiles && (await unlessMissing(stat(from))) === undefined) continue;
    await mkdir(dirname(aside), { recursive: true });
    await unlessMissing(rename(to, aside));
    if (!hasFiles) continue;
    await mkdir(dirname(to), { recursive: true });
    await rename(from, to);
  }
  await rm(day, { recursive: true, force: true });
}

async function unlessMissing<Value>(value: Promise<Value>): Promise<Value | undefined> {
  try {
    return await value;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
