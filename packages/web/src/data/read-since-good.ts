import type { Comparison } from "@tapedeck/client";
import type { Loop } from "@tapedeck/client/lanes/step";
import { allChangedFiles, type ChangedFile } from "../model/changed-files.ts";
import { isOutput } from "../model/output.ts";
import { loopSide } from "../model/route.ts";
import { reader } from "./reader.ts";
import { answered, firstOf } from "./reading.ts";

export type SinceGood = {
  /** With the last good loop. */
  readonly comparison: Comparison;
  /** Those that git reported to `tapedeck run`, and those that Skaffold named between the two with `-v info`. */
  readonly files: readonly ChangedFile[];
};

const maxLines = 20_000;

/** What is another than at the last good loop. */
export async function readSinceGood(loop: Loop, signal: AbortSignal): Promise<SinceGood> {
  const comparison = await reader().compare(loopSide(loop), { signal });
  const { left, right } = comparison;
  if (right === null) return { comparison, files: [] };
  // Skaffold names the files before the loop that they start. What changed before the session is not in its output.
  const after = right.session === left.session ? right.position : "start";
  const lines = firstOf(
    reader().events({
      sessions: [loop.session],
      kinds: ["log.written"],
      onGap: () => {},
      after,
      until: loop.position,
      signal,
    }),
    maxLines,
  );
  const { value } = await answered(lines, [], signal);
  const output = value.map((event) => (isOutput(event) ? (event.detail?.text ?? "") : "")).join("");
  return { comparison, files: allChangedFiles(comparison.differences, output) };
}
