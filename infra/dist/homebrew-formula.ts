import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { npmPackages } from "@tapedeck/infra/names";
import { version } from "@tapedeck/shared/version";
import { root } from "./places.ts";

/** Writes the formula of Homebrew for these archives: of the CLI, and of the servers. */
export async function writeFormula(file: string, [cli = "", server = ""]: readonly string[]): Promise<void> {
  const template = await readFile(join(root, "infra/homebrew/tapedeck.rb.in"), "utf8");
  const sha256 = async (archive: string) =>
    createHash("sha256")
      .update(await readFile(archive))
      .digest("hex");
  const values: Readonly<Record<string, string>> = {
    CLI: npmPackages.cli,
    SERVER: npmPackages.server,
    VERSION: version,
    SHA256_CLI: await sha256(cli),
    SHA256_SERVER: await sha256(server),
  };
  // The template's first line says how to fill it.
  const formula = template.slice(template.indexOf("\n") + 1);
  await writeFile(
    file,
    formula.replace(/@([A-Z0-9_]+)@/g, (found, name: string) => values[name] ?? found),
  );
}
