import { readdirSync } from "node:fs";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startStack } from "../stack/stack.ts";
import { expectLabels } from "./expect-labels.ts";
import { labelledLoops } from "./labelled-loops.ts";

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
  for (const [index, [name, labelled]] of experiments.entries()) {
    await expectLabels(stack.database, labelled, `default/d${index}/p${index}/skaffold`).catch((error: unknown) => {
      throw new Error(name, { cause: error });
    });
  }
});
