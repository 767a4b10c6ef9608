import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { type Comparison, isCause } from "./is-cause.ts";
import { type RecordedCause, recordedCauses } from "./recorded-causes.ts";

// The whole path: what a real Skaffold sent, recorded, put into tables, and compared.

const cleanup = new AsyncDisposableStack();
let stack: Stack;

/** bob has the cause, and alice has not. */
const sidesOf = ({ bad, good }: RecordedCause, index: number) =>
  [{ developer: "bob", folder: bad }, ...(typeof good === "string" ? [{ developer: "alice", folder: good }] : [])].map(
    (side) => ({ ...side, project: `p${index}` }),
  );

beforeAll(async () => {
  const sides = recordedCauses.flatMap(sidesOf);
  const fakes = await Promise.all(
    sides.map(async ({ folder }) => cleanup.use(await startFakeSkaffold({ recording: loadRecording(folder) }))),
  );
  const skaffold = sides.map(({ developer, project }, index) => ({
    developer,
    project,
    address: fakes[index]?.address ?? "",
  }));
  stack = cleanup.use(await startStack({ skaffold }));
  // Skaffold describes itself on both of its streams before it does anything.
  await Promise.all(fakes.map((fake) => fake.playUntil({ v1: 1, v2: 1 })));
  await stack.drained(...fakes);
  await Promise.all(fakes.map((fake) => fake.play()));
  await stack.drained(...fakes);
  await stack.caughtUp();
});
afterAll(() => cleanup.disposeAsync());

it.each(recordedCauses.map((recorded, index) => ({ ...recorded, index })))("$name", async (recorded) => {
  const { loop, good, index, cause } = recorded;
  const [bob, alice] = [`bob/p${index}`, `alice/p${index}`];
  const left = await loopName(bob, loop);
  const right = typeof good === "number" ? await loopName(bob, good) : alice;
  const { status, body } = await stack.httpCall("GET", `/api/v1/compare?${new URLSearchParams({ left, right })}`);
  expect(status, body).toBe(200);
  const compared = JSON.parse(body) as Comparison;
  expect(compared.right?.failure ?? null, body).toBeNull();
  const rank = compared.differences.findIndex((one) => isCause(one, compared, cause)) + 1;
  expect(rank, JSON.stringify(compared, undefined, 1)).toBe(1);
});

async function loopName(source: string, loop: number): Promise<string> {
  const { body } = await stack.httpCall("GET", `/api/v1/operations?kind=loop&source=${source}&limit=100`);
  const { items } = JSON.parse(body) as {
    readonly items: readonly { readonly session: string; readonly runner: number; readonly loop: number }[];
  };
  const found = items.find((one) => one.loop === loop);
  return `${found?.session}.${found?.runner}.${loop}`;
}
