import { freshDatabase } from "@tapedeck/shared/testing/database";
import { expect, it } from "vitest";
import { generateSchema } from "../testing/generate/schema.ts";
import { openDatabase } from "./database.ts";
import { migrate } from "./migrate.ts";

it("schema.generated.ts is generated from the migrated database (renew it with: npm run generate:schema -w services/query)", async () => {
  await using fresh = await freshDatabase();
  await using database = openDatabase({ url: fresh.url, connections: 2 });
  await migrate(database);
  await expect(await generateSchema(fresh.url)).toMatchFileSnapshot("./schema.generated.ts");
});
