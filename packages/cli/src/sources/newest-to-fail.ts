import type { ApiClient, Page } from "../api/api.ts";

/** The source that failed last, of all. Undefined: none has. */
export async function newestToFail(api: ApiClient): Promise<string | undefined> {
  const failed = { outcome: "failed", kind: ["loop", "command"], limit: 1 };
  const { items } = await api.get<Page<{ readonly source: string }>>("/api/v1/search", failed);
  return items[0]?.source;
}
