import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { npmPackages } from "@tapedeck/infra/names";
import { version } from "@tapedeck/shared/version";
import { expect, it } from "vitest";
import { lacking, onMachine } from "../docker/testing/on-machine.ts";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { writeFormula } from "./homebrew-formula.ts";

/** The formula of two archives. */
async function formulaFile(): Promise<string> {
  const folder = await temporaryFolder();
  const archives = ["cli", "server"].map((name) => join(folder, name));
  for (const archive of archives) await writeFile(archive, archive);
  const file = join(folder, "tapedeck.rb");
  await writeFormula(file, archives);
  return file;
}

it("the formula names both archives with their checksums", async () => {
  const file = await formulaFile();
  const formula = await readFile(file, "utf8");
  for (const name of ["cli", "server"]) {
    const archive = file.replace("tapedeck.rb", name);
    expect(formula).toContain(`sha256 "${createHash("sha256").update(archive).digest("hex")}"`);
  }
  for (const name of [npmPackages.cli, npmPackages.server]) expect(formula).toContain(`registry.npmjs.org/${name}/-/`);
  expect(formula).toContain(`-${version}.tgz`);
  expect(formula).not.toMatch(/@[A-Z0-9_]+@/);
});

const noRuby = lacking(["ruby"], { asRoot: false });
it.skipIf(noRuby !== undefined)(`the formula is Ruby${noRuby === undefined ? "" : ` (${noRuby})`}`, async () => {
  expect(await onMachine("ruby", ["-wc", await formulaFile()])).toBe("Syntax OK\n");
});
