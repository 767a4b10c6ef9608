import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Makes a folder, and those above it that are missing, one after the other: in a file system that makes no folders, such as /proc,
 * Node's recursive mkdir never ends. Resolves with the topmost one that it made; undefined: the folder was there.
 */
export async function makeFolder(folder: string, mode = 0o777): Promise<string | undefined> {
  if (await isFolder(folder)) return undefined;
  const above = dirname(folder);
  const topmost = above === folder ? undefined : await makeFolder(above, mode);
  try {
    await mkdir(folder, { mode });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (await isFolder(folder)) return topmost;
    throw error;
  }
  return topmost ?? folder;
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}
