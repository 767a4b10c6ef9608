import type { CleanPlace } from "./clean-place.ts";

export type StartTimes = {
  /** From the start to the end of the shortest run. */
  readonly shortestMs: number;
  /** What a run takes of the processor on average, which other programs of the machine lengthen least. */
  readonly cpuMs: number;
};

/** How long a command takes from its start to its end, in many runs. */
export async function startTimes(place: CleanPlace, command: string, runs = 15): Promise<StartTimes> {
  const [shell, ...words] = command.split(" ");
  let shortestMs = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run += 1) {
    const began = performance.now();
    const { code, stderr } = await place.run(shell ?? "", ...words);
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${stderr}`);
    shortestMs = Math.min(shortestMs, performance.now() - began);
  }
  // A shell adds up what its children take.
  const script = `for i in $(seq ${runs}); do ${command} >/dev/null; done; times`;
  const { stdout } = await place.run("sh", "-c", script);
  const [, ofChildren = ""] = stdout.trim().split("\n");
  const seconds = [...ofChildren.matchAll(/(\d+)m([\d.]+)s/g)].map(([, min, sec]) => Number(min) * 60 + Number(sec));
  return { shortestMs, cpuMs: (1_000 * seconds.reduce((sum, each) => sum + each, 0)) / runs };
}
