import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../places.ts";

/** docs/install.md, as tests follow it. */
export type InstallPage = {
  /** What is typed, by the first column of its first table. */
  readonly typed: (who: string) => readonly string[];
  /** Its blocks of code. */
  readonly blocks: readonly string[];
};

export async function installPage(): Promise<InstallPage> {
  const text = await readFile(join(root, "docs/install.md"), "utf8");
  const rows = text.split("\n").filter((line) => line.startsWith("| "));
  return {
    typed(who) {
      const [, , , typed = ""] = rows.find((row) => row.startsWith(`| ${who} |`))?.split("|") ?? [];
      return [...typed.matchAll(/`([^`]+)`/g)].map(([, command = ""]) => command);
    },
    blocks: [...text.matchAll(/^```\w*\n(.*?)^```/gms)].map(([, block = ""]) => block),
  };
}
