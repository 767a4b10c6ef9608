import { line } from "@tapedeck/fakes/vagrant/client";
import { commandResult, setUpShop } from "@tapedeck/fakes/vagrant/shop";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { expect } from "vitest";
import { at, type VagrantHarnessOptions, type VagrantHost, vagrantHarness } from "../../harness/vagrant-harness.ts";
import { outputOf } from "../../vagrant/output.ts";
import { holes, sessionsOf } from "../recorded-events.ts";
import { type Fault, strike } from "./strike.ts";

export type FlowOptions = VagrantHarnessOptions & { readonly faults: readonly Fault[]; readonly lines: number };

/**
 * Checks the output of a job that writes lines "0", "1" … without a pause, through all kills and outages. The position
 * of each line is known: every recorded line is at its position, once, and missing lines are a recorded gap.
 */
export async function outputKeepsItsPosition({ faults, lines, ...options }: FlowOptions): Promise<void> {
  const random = seeded("vagrant flow");
  await using harness = await vagrantHarness(["flow"], options);
  const [host] = harness.hosts;
  if (host === undefined) throw new Error("no host");
  const { fake } = host;
  const job = setUpShop(fake).run();
  await until(async () => (await pieces(host, job)).kinds.has("job.started"), { message: "the job to be found" });
  await until(() => fake.streams() > 0, { message: "the tap to follow the job" });
  let total = 0;
  const write = (count: number) => {
    fake.jobs.write(
      job,
      Array.from({ length: count }, () => line(String(total++))),
    );
  };
  // Before anything is recorded, nothing shows that there was earlier output.
  write(1);
  await settled();
  const places = faults.map(() => random.below(lines)).toSorted((a, b) => a - b);
  for (const [round, fault] of faults.entries()) {
    do await writeOn();
    while (total < (places[round] ?? 0));
    // Output written during an outage may or may not fit in the rest of the server's 5,248 lines. A second beginning
    // could not be distinguished from the first, so not everything is random.
    const isMuch = random.below(3) === 0;
    if (isMuch) await settled();
    await strike(fault, harness, () => write(isMuch ? 4_800 : 1 + random.below(2_000)));
  }
  while (total < lines) await writeOn();
  fake.jobs.complete(job, commandResult({ run_result: true }));
  await until(async () => (await pieces(host, job)).isWhole, { message: "the output to be whole" });
  await harness.recorded();

  const { written, gaps } = await pieces(host, job);
  expect(written.find(({ index, text }) => text !== `${index}\n`)).toBeUndefined();
  expect(holes(await host.events())).toEqual([]);
  expect(sessionsOf(await host.events())).toHaveLength(1);
  let next = 0;
  for (const { index } of written) {
    const gap = gaps.find(({ from }) => from === next);
    if (gap !== undefined) next = gap.to;
    expect(index, "what comes next").toBe(next++);
  }
  const end = gaps.find(({ from }) => from === next)?.to ?? next;
  expect(end).toBe(total);
  for (const { from, to } of gaps) {
    expect(from, "a gap where something is missing").toBeLessThan(to);
    expect(to % 5_248, "a gap up to where the server began anew").toBe(0);
  }
  const following = harness.client.job(job, at(host));
  expect(await following.end).toMatchObject({ code: 0 });
  const texts = outputOf(following.messages).map(({ event }) => (event?.$case === "line" ? event.value.msg : ""));
  expect(texts).toEqual(written.map(({ index }) => String(index)));
  console.log(`vagrant flow: ${faults.join(" ")}; ${written.length} of ${total} lines, ${gaps.length} gaps`);

  /** Resolves when everything written is recorded, except for so many lines. */
  async function settled(behind = 0): Promise<void> {
    if (host === undefined) return;
    const isThere = async () => ((await pieces(host, job)).written.at(-1)?.index ?? -1) >= total - 1 - behind;
    await until(isThere, { message: "what was written to be recorded" });
  }

  async function writeOn(): Promise<void> {
    write(1 + random.below(400));
    await settled(2_000);
  }
}

/** Returns the recorded output of a job. */
async function pieces({ events }: VagrantHost, job: string) {
  const all = (await events()).map(({ event }: RecordedEvent) => event);
  const about = all.filter(({ subject }) => subject === job);
  return {
    kinds: new Set(about.map(({ kind }) => kind)),
    isWhole: about.some(({ kind }) => kind === "mirror.received"),
    written: about.flatMap(({ detail }) =>
      detail?.$case === "text" ? [{ index: Number(detail.value.output?.index), text: detail.value.text }] : [],
    ),
    gaps: all.flatMap(({ detail }) => {
      const output = detail?.$case === "gap" ? detail.value.output : undefined;
      return output?.job === job ? [{ from: Number(output.index), to: Number(output.next_index ?? output.index) }] : [];
    }),
  };
}
