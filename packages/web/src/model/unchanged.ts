import type { Loop } from "@tapedeck/client/lanes/step";
import { loopPath } from "./route.ts";
import type { StateRow, StateSection } from "./state-sections.ts";

type Placed = Pick<Loop, "kind" | "session" | "runner" | "loop" | "steps" | "endedAt" | "position">;

/**
 * A state in which artifacts that were not built again say since when they are as they are: Skaffold forgets at the
 * start of a loop how they went before. `loops`: those of the session up to the state's moment, oldest first.
 */
export function withUnchanged(sections: readonly StateSection[], loops: readonly Placed[]): readonly StateSection[] {
  const isRunning = loops.at(-1)?.endedAt === undefined;
  const since = (row: StateRow): StateRow => {
    if (row.value !== "not started") return row;
    const built = loops.findLast((loop) => loop.kind === "loop" && isBuiltIn(loop, row.name));
    if (built === undefined) return row;
    // What a loop that runs will still build is not known.
    const value = `${isRunning ? "last built in" : "unchanged since"} loop ${built.loop}`;
    return { ...row, value, path: loopPath(built) };
  };
  return sections.map((section) =>
    section.title === "Artifacts" ? { ...section, rows: section.rows.map(since) } : section,
  );
}

function isBuiltIn({ steps }: Placed, artifact: string): boolean {
  return steps.some(
    ({ kind, subject, outcome }) => kind === "build" && subject === artifact && outcome === "succeeded",
  );
}

/** The tags that were deployed last, by artifact, as Skaffold's output lists them. */
export function deployedTags(output: string): ReadonlyMap<string, string> {
  const tags = new Map<string, string>();
  const lists = output.split(/^Tags used in deployment:\n/m);
  if (lists.length < 2) return tags;
  for (const line of (lists.at(-1) ?? "").split("\n")) {
    const [, name, tag] = /^ - (\S+) -> (\S+)$/.exec(line) ?? [];
    if (name === undefined || tag === undefined) break;
    tags.set(name, tag);
  }
  return tags;
}

/** A tag that fits a line: a digest shows its first characters, as git does. */
export function shortTag(tag: string): string {
  return tag.replace(/([0-9a-f]{12})[0-9a-f]{28,}/g, "$1…");
}
