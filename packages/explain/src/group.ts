import { lineOf } from "./lines.ts";

/** Parts of a cause that differ from run to run, and what stands for them. The order counts: the longest first. */
const varying: readonly (readonly [RegExp, string])[] = [
  [/\b\w{1,12}:\/\/[^\s"'`)\]}>]{1,400}/g, "<url>"],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<id>"],
  // The hash of a ReplicaSet and the id of its pod.
  [/-(?=[a-z]{0,10}\d)[a-z0-9]{6,10}-[a-z0-9]{5}\b/g, "-<id>"],
  [/\b(?:sha\d{3}:)?(?=[a-f]{0,64}\d)[0-9a-f]{7,128}\b/gi, "<hash>"],
  [/\b0x[0-9a-f]{1,16}\b/gi, "<hash>"],
  [/(?:[A-Za-z]:)?(?:\.{0,2}[/\\])?(?:[\w@.~+-]{1,100}[/\\]){1,30}[\w@.~+-]{0,100}/g, "<path>"],
  [
    /(?<![\w])[\w-]{1,80}\.(?:[cm]?[jt]sx?|py|go|rs|java|kt|rb|php|cs|c|cc|cpp|h|hpp|sql|ya?ml|json|toml|tf|sh|scala|hs|swift|ex|exs)\b/g,
    "<path>",
  ],
  [/\d+/g, "#"],
];

/** The key under which failures of one kind are counted: reason and cause without what differs from run to run. */
export function causeGroup(reason: string, cause: string): string {
  const { bare } = lineOf(cause);
  const normalized = varying.reduce((text, [pattern, sign]) => text.replace(pattern, sign), bare);
  return `${reason}: ${normalized
    .replace(/<path>(?:[:(,]#\)?){1,3}/g, "<path>")
    .replace(/\s+/g, " ")
    .trim()}`;
}
