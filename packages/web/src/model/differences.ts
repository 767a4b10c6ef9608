import type { Difference } from "@tapedeck/client";

/** Settings that only one side has: their names say all, and many of them would hide the rest. */
export type OneSided = { readonly side: "left" | "right"; readonly kind: string; readonly names: readonly string[] };

const isFolded: ReadonlySet<string> = new Set(["configuration", "label", "version"]);
/** So few are shown each by itself. */
const minFolded = 3;

/** Differences with values, and those of which there are several on one side alone, by their kind. */
export function foldedDifferences(differences: readonly Difference[]): {
  readonly valued: readonly Difference[];
  readonly oneSided: readonly OneSided[];
} {
  const groups = Map.groupBy(differences, groupOf);
  const isLarge = (key: string) => key !== "" && (groups.get(key)?.length ?? 0) >= minFolded;
  return {
    valued: differences.filter((one) => !isLarge(groupOf(one))),
    oneSided: [...groups].flatMap(([key, [first, ...others]]): OneSided[] => {
      if (!isLarge(key) || first === undefined) return [];
      const names = [first, ...others].map(({ subject }) => subject);
      return [{ side: first.left === null ? "right" : "left", kind: first.kind, names }];
    }),
  };
}

function groupOf({ kind, left, right }: Difference): string {
  if (!isFolded.has(kind) || (left !== null && right !== null)) return "";
  return `${kind} ${left === null ? "right" : "left"}`;
}
