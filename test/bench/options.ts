import { resolve } from "node:path";
import { parseArgs } from "node:util";
import type { AgainstOptions } from "./against.ts";
import type { SkaffoldProject } from "./frame/skaffold-dev.ts";
import { defaultParts, type PartName, partNames, type Run, runsOf } from "./parts/all.ts";

export type Options = {
  readonly runs: readonly Run[];
  readonly quick: boolean;
  readonly profile: boolean;
  /** For the part real-skaffold. */
  readonly skaffold: SkaffoldProject | undefined;
  /** The path of the JSON file, with the Markdown beside it; undefined: into .tapedeck/bench. */
  readonly out: string | undefined;
  /** A commit to be measured in turns with this checkout, and how often. */
  readonly against: AgainstOptions | undefined;
};

/** An error whose message is one sentence for people. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export const usage = `usage: npm run bench -- [--only ${partNames.join(",")}]
  [--size 10k|100k|1m|10m[,…]] [--quick] [--profile] [--out file.json]
  [--against commit [--pairs 3]]     measures this checkout and a commit in turns
  [--project folder --touch file]   for real-skaffold: a project in which \`skaffold dev\` works, and a file that begins a loop`;

export function readOptions(args: readonly string[]): Options {
  const { values } = parse(args);
  const quick = values.quick ?? false;
  const parts = values.only?.split(",") ?? defaultParts;
  const unknown = parts.find((name) => !isPart(name));
  if (unknown !== undefined) throw new UsageError(`there is no part "${unknown}": any of ${partNames.join(", ")}.`);
  const runs = runsOf(parts.filter(isPart), values.size?.split(",").map(sizeOf), quick);
  const profile = values.profile ?? false;
  return { runs, quick, profile, out: values.out, skaffold: projectOf(values), against: againstOf(values) };
}

function parse(args: readonly string[]) {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  try {
    return parseArgs({
      args: [...args],
      options: {
        only: text,
        size: text,
        quick: flag,
        profile: flag,
        out: text,
        project: text,
        touch: text,
        against: text,
        pairs: text,
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function againstOf({ against: commit, pairs = "3", only, size, quick }: ReturnType<typeof parse>["values"]) {
  if (commit === undefined) return undefined;
  if (!/^[1-9][0-9]?$/.test(pairs)) throw new UsageError(`"${pairs}" is not a number of pairs: 1 to 99.`);
  const args = [
    ...(only === undefined ? [] : ["--only", only]),
    ...(size === undefined ? [] : ["--size", size]),
    ...(quick === true ? ["--quick"] : []),
  ];
  return { commit, pairs: Number(pairs), args };
}

function projectOf({ project, touch }: { readonly project?: string; readonly touch?: string }) {
  if (project === undefined && touch === undefined) return undefined;
  if (project === undefined || touch === undefined) throw new UsageError("--project and --touch are given together.");
  return { folder: resolve(project), touch };
}

function isPart(name: string): name is PartName {
  return (partNames as readonly string[]).includes(name);
}

function sizeOf(text: string): number {
  const [, digits, unit = ""] = /^(\d+)(k|m)?$/i.exec(text) ?? [];
  const size = Number(digits) * ({ k: 1_000, m: 1_000_000 }[unit.toLowerCase()] ?? 1);
  if (!(size >= 100)) throw new UsageError(`"${text}" is not a size: a number from 100, such as 10k or 1m.`);
  return size;
}
