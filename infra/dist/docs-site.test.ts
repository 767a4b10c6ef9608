import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { copyDocs } from "./docs-site.ts";

it("a package without the manual is not built", async () => {
  const folder = await temporaryFolder();
  await expect(copyDocs(join(folder, "to"), join(folder, "dist"))).rejects.toThrow("run `npm run docs:build`");
});
