import { stepKinds } from "@tapedeck/client/lanes/step";
import type { ApiClient, Page } from "../api/api.ts";

type Failed = { readonly source: string; readonly loop: number; readonly startPosition: string };

/** Failed steps that are searched for one outside of loops. */
const maxSteps = 50;

/** The source that failed last, of all: a loop, a command, or a step of a Skaffold without loops. Undefined: none has. */
export async function newestToFail(api: ApiClient): Promise<string | undefined> {
  const outcome = "failed";
  const [units, steps] = await Promise.all([
    api.get<Page<Failed>>("/api/v1/search", { outcome, kind: ["loop", "command"], limit: 1 }),
    api.get<Page<Failed>>("/api/v1/operations", { outcome, kind: stepKinds, limit: maxSteps }),
  ]);
  const [newest] = units.items;
  const oneShot = steps.items.find(({ loop }) => loop === 0);
  return oneShot !== undefined && oneShot.startPosition > (newest?.startPosition ?? "")
    ? oneShot.source
    : newest?.source;
}
