import { readFile } from "node:fs/promises";

/** The pages of docs/ with examples of SQL. */
export const pagesWithQueries = ["sql.md", "skaffold.md", "vagrant.md", "rkt.md"] as const;

export const docsPage = (page: string) => readFile(new URL(`../../../../docs/${page}`, import.meta.url), "utf8");

/** Every query in the SQL examples of a page of docs/. */
export async function documentedQueries(page: string): Promise<readonly string[]> {
  const blocks = [...(await docsPage(page)).matchAll(/^```sql\n(.*?)^```/gms)];
  return blocks.flatMap(([, block = ""]) => block.trim().replace(/;$/, "").split(/;$/m));
}
