import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Column, table } from "tapedeck/display/table";
import { type FigureRow, spread } from "./frame/row.ts";
import { number } from "./report/table.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

export type AgainstOptions = {
  /** Anything that git takes for a commit. */
  readonly commit: string;
  /** How often each of the two is measured, in turns. */
  readonly pairs: number;
  /** What each run of the bench gets, without `--out`. */
  readonly args: readonly string[];
};

type Measured = readonly FigureRow[];

/**
 * Measures this checkout and a commit in turns, and prints the ratio of each figure pair by pair. Machines here change their
 * speed within minutes, which both of a pair bear.
 */
export async function compareWith({ commit, pairs, args }: AgainstOptions): Promise<void> {
  const sha = execFileSync("git", ["rev-parse", "--short", `${commit}^{commit}`], {
    cwd: root,
    encoding: "utf8",
  }).trim();
  const other = join(root, ".tapedeck", "bench", `against-${sha}`);
  if (!existsSync(other)) execFileSync("git", ["worktree", "add", "--detach", "--force", other, sha], { cwd: root });
  const folder = mkdtempSync(join(tmpdir(), "tapedeck-against-"));
  const ours: Measured[] = [];
  const theirs: Measured[] = [];
  try {
    for (let pair = 0; pair < pairs; pair++) {
      const both = [
        async () => ours.push(await measure(root, join(folder, `ours-${pair}.json`), args)),
        async () => theirs.push(await measure(other, join(folder, `theirs-${pair}.json`), args)),
      ];
      // Each is the first one in turns, because the second run finds a warmer machine.
      for (const run of pair % 2 === 0 ? both : both.reverse()) await run();
      console.log(`pair ${pair + 1} of ${pairs}\n`);
    }
  } finally {
    rmSync(folder, { recursive: true });
    execFileSync("git", ["worktree", "remove", "--force", other], { cwd: root });
  }
  console.log(comparison(ours, theirs, sha));
}

/** Runs the bench of a checkout. Its own figures go to the terminal. */
async function measure(checkout: string, out: string, args: readonly string[]): Promise<Measured> {
  const bench = spawn(process.execPath, [join(checkout, "infra", "bootstrap.mjs"), "bench", ...args, "--out", out], {
    cwd: checkout,
    stdio: "inherit",
  });
  await once(bench, "exit");
  if (!existsSync(out)) throw new Error(`the bench of ${checkout} has measured nothing`);
  return (JSON.parse(readFileSync(out, "utf8")) as { readonly rows: Measured }).rows;
}

/** One line for each figure that both have. A figure below 1 is the smaller one of this checkout. */
export function comparison(ours: readonly Measured[], theirs: readonly Measured[], sha: string): string {
  const columns: readonly Column[] = [
    { title: "FIGURE" },
    { title: "THIS CHECKOUT", align: "right" },
    { title: sha.toUpperCase(), align: "right" },
    { title: "RATIO", align: "right" },
    { title: "OF EACH PAIR", align: "right" },
  ];
  const figures = (ours[0] ?? []).flatMap(({ figure, unit, size }) => {
    const median = (run: Measured) => {
      const row = run.find((one) => one.figure === figure && one.size === size && one.error === undefined);
      return row === undefined ? Number.NaN : spread(row.runs).median;
    };
    const pairs = ours.map((run, at) => [median(run), median(theirs[at] ?? [])] as const);
    const measured = pairs.filter((pair) => pair.every(Number.isFinite));
    if (measured.length === 0) return [];
    const of = (values: readonly number[]) => number(spread(values).median);
    const ratios = measured.map(([mine, other]) => mine / other);
    return [
      [
        figure,
        `${of(measured.map(([mine]) => mine))} ${unit}`,
        `${of(measured.map(([, other]) => other))} ${unit}`,
        of(ratios),
        ratios.map(number).join(", "),
      ],
    ];
  });
  return table(columns, figures);
}
