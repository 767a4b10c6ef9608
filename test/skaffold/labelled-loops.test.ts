import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startStack } from "../stack/stack.ts";
import { expectLabels, failureRows } from "./expect-labels.ts";
import { labelledLoops } from "./labelled-loops.ts";
import { labelledWaits } from "./labelled-waits.ts";

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings/skaffold");

/** Every folder of one process: those of 07 hold one for each. */
function processes(): readonly string[] {
  const folders = (folder: string) =>
    readdirSync(join(recordings, folder), { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [join(folder, entry.name)] : [],
    );
  return folders("").flatMap((folder) => {
    const inner = folders(folder);
    return inner.length > 0 ? inner : [folder];
  });
}

it("every recording has been read by a person", () => {
  expect(Object.keys(labelledLoops).toSorted()).toEqual(processes().toSorted());
});

it("fewer than a tenth of all failures have no reason that is known", () => {
  const all = Object.values(labelledLoops);
  const failures = all.flatMap(failureRows);
  const unexplained = all.flatMap((labelled) => labelled.unexplained ?? []);
  console.log(`without a known reason: ${unexplained.length} of ${failures.length} failures of the recordings`);
  expect(unexplained.length / failures.length).toBeLessThan(0.1);
});

it("every loop's waits name its messages", () => {
  const counts = (of: Readonly<Record<string, readonly unknown[]>>) =>
    Object.entries(of).flatMap(([name, { length }]) => (length === 0 ? [] : [[name, length]]));
  const loops = Object.fromEntries(Object.entries(labelledLoops).map(([name, labelled]) => [name, labelled.loops]));
  expect(counts(labelledWaits)).toEqual(counts(loops));
  for (const [name, labelled] of Object.entries(labelledWaits)) {
    const lines = (file: string) => readFileSync(join(recordings, name, file), "utf8").split("\n");
    for (const [messages, waits] of labelled) {
      const [, first = "", last = "", rendering = ""] = /^v1 (\d+)-(\d+)(?:, v2 (.*))?$/.exec(messages) ?? [];
      const at = (line: string) => lines("v1-events.ndjson")[Number(line) - 1];
      expect(at(first), `${name}, ${messages}`).toMatch(/"devLoopEvent":.*"In Progress"/);
      if (waits !== "") expect(at(last), `${name}, ${messages}`).toMatch(/"devLoopEvent":.*"(?:Succeeded|Failed)"/);
      for (const line of rendering === "" ? [] : rendering.split(" "))
        expect(lines("v2-events.ndjson")[Number(line) - 1], `${name}, ${messages}`).toMatch(/"task":"Render"/);
    }
  }
});

it("the experiments on the server have the loops, causes and red times that a person reads from them", async () => {
  await using cleanup = new AsyncDisposableStack();
  const experiments = Object.entries(labelledLoops).filter(([name]) => /^1[56]-/.test(name));
  expect(experiments).toHaveLength(14);
  const fakes = await Promise.all(
    experiments.map(async ([name]) =>
      cleanup.use(await startFakeSkaffold({ recording: loadRecording(join(recordings, name)) })),
    ),
  );
  const skaffold = fakes.map(({ address }, index) => ({ address, developer: `d${index}`, project: `p${index}` }));
  const stack = cleanup.use(await startStack({ skaffold }));
  const started = async (kind: string) => {
    const { body } = await stack.httpCall("GET", `/api/v1/events?after=start&limit=1000&kind=${kind}`);
    const { items } = JSON.parse(body) as { readonly items: readonly { readonly source: string }[] };
    return new Set(items.map(({ source }) => source)).size === fakes.length;
  };
  await until(() => started("upstream.connected"), { message: "all to be connected" });
  await Promise.all(fakes.map((fake) => fake.play()));
  await stack.drained(...fakes);
  await Promise.all(fakes.map((fake) => fake.end("kill")));
  await until(() => started("session.ended"), { message: "all sessions to end" });
  await stack.caughtUp();
  for (const [index, [name]] of experiments.entries()) {
    await expectLabels(stack.database, name, `default/d${index}/p${index}/skaffold`).catch((error: unknown) => {
      throw new Error(name, { cause: error });
    });
  }
});
