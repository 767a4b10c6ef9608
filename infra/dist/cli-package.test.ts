import { npmPackages } from "@tapedeck/infra/names";
import { expect, it } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { buildCliPackage } from "./cli-package.ts";

it("the CLI's package has no server in it", { timeout: 60_000 }, async () => {
  await expect(buildCliPackage(await temporaryFolder())).resolves.toMatchObject({ name: npmPackages.cli });
});
