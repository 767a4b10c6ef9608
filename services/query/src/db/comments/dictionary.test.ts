import { freshDatabase } from "@tapedeck/shared/testing/database";
import { expect, it } from "vitest";
import { generateDictionary } from "../../testing/generate/dictionary.ts";
import { migrated } from "../../testing/migrated.ts";

it("docs/sql-dictionary.md is generated from the comments (renew it with: npm run generate:dictionary -w services/query)", async () => {
  await using fresh = await freshDatabase(migrated);
  await expect(await generateDictionary(fresh.url)).toMatchFileSnapshot("../../../../../docs/sql-dictionary.md");
});
