import { madeUpRecording, runningPod } from "@tapedeck/fakes/rkt/host";
import { startFakeRkt } from "@tapedeck/fakes/rkt/server";
import { InspectPodRequest, InspectPodResponse, type Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startStack } from "../stack/stack.ts";

type State = {
  readonly notHeardSince: string | null;
  readonly heardAt: Readonly<Record<string, string>>;
  readonly state: { readonly pods: readonly { readonly id: string; readonly state: string }[] };
};
type SourceItem = Pick<State, "notHeardSince" | "heardAt"> & { readonly lagMs: number };

it("while rkt's ListPods waits for a pod that is starting, the end of another is recorded, and the age of the list is said", async () => {
  const [dies, lives] = [runningPod(0), runningPod(1)];
  const ended = new Set<string>();
  const recording = madeUpRecording({ pods: [[dies, lives]], images: [[]] });
  await using host = await startFakeRkt({
    recording,
    repeatOnReconnect: true,
    // InspectPod answers meanwhile, as the real one does.
    lie(call) {
      if (call.rpc !== "InspectPod") return undefined;
      const { id } = InspectPodRequest.decode(call.request);
      const found = [dies, lives].find((one) => one.id === id);
      if (found === undefined) return undefined;
      const apps = found.apps.map((app) => ({ ...app, exit_code: 7 }));
      const pod: Pod = ended.has(id) ? { ...found, state: PodState.POD_STATE_EXITED, apps } : found;
      return { response: Buffer.from(InspectPodResponse.encode({ pod }).finish()) };
    },
  });
  await using stack = await startStack({ rkt: [{ address: host.address, interval: "20ms" }] });
  const get = async (path: string) => stack.httpCall("GET", `/api/v1/${path}`);
  const state = async (): Promise<State> => JSON.parse((await get("state")).body);
  const source = async (): Promise<SourceItem> => JSON.parse((await get("sources")).body).items[0];
  await stack.described();
  await until(async () => Object.keys((await state()).heardAt).length === 2, { message: "both lists to be heard" });
  await until(async () => (await state()).notHeardSince === null, { message: "no list to be late" });

  const free = host.hold("pods");
  ended.add(dies.id);
  const isExited = async () =>
    (await state()).state.pods.some(({ id, state: is }) => id === dies.id && is.includes("EXITED"));
  await until(isExited, { message: "the end of the pod" });
  const { notHeardSince, heardAt, state: then } = await state();
  expect(then.pods.find(({ id }) => id === lives.id)?.state).toContain("RUNNING");
  expect(notHeardSince).toBe(heardAt.pods);
  const listed = await source();
  expect(listed.notHeardSince).toBe(heardAt.pods);
  const age = async () => (await source()).lagMs;
  const before = await age();
  await until(async () => (await age()) > before + 500, { message: "what is known to grow older" });
  const answer = await get("state");
  expect(answer.headers["tapedeck-not-heard-since"]).toBe(heardAt.pods);
  expect(answer.headers["tapedeck-heard-at"]).toContain(`pods=${heardAt.pods}`);

  free();
  await until(async () => (await state()).notHeardSince === null, { message: "the list to be heard again" });
});
