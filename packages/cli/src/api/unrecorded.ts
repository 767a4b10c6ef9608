import { printError } from "../display/output.ts";
import type { ApiClient, Page } from "./api.ts";

/** Where there is nothing to show or to wait for, the name of a source may be mistyped. */
export async function reportUnrecorded(api: ApiClient, sources: readonly string[] = []): Promise<void> {
  for (const source of sources) {
    const { items } = await api.get<Page<object>>("/api/v1/events", { source, last: 1 });
    if (items.length === 0) printError(`nothing has been recorded for ${source}: \`tapedeck status\` lists all`);
  }
}
