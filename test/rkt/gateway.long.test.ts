import { largeHost, runningPod } from "@tapedeck/fakes/rkt/host";
import { AppState, EventType, InspectPodRequest, type Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { describe, expect, it } from "vitest";
import { recordedHost } from "./recorded-host.ts";

describe("a host with 5,000 pods", () => {
  it("is recorded and served whole, and the end of one pod is recorded", async () => {
    await using on = await recordedHost(largeHost({ pods: 5_000, polls: 2, ending: 1 }));
    const { client } = on;
    await on.play({ pods: 1 });
    const answer = (await client.ask("ListPods", new Uint8Array())) as { readonly result: readonly Pod[] };
    expect(answer.result.map(({ id }) => id)).toEqual(
      Array.from({ length: 5_000 }, (_, index) => runningPod(index).id),
    );
    const listening = client.events(2);
    await on.play({ pods: 2 });
    const { id } = runningPod(0);
    expect((await listening).map((event) => [event.type, event.id])).toEqual([
      [EventType.EVENT_TYPE_APP_EXITED, id],
      [EventType.EVENT_TYPE_POD_EXITED, id],
    ]);
    const inspected = await client.ask("InspectPod", InspectPodRequest.encode({ id }).finish());
    expect(inspected).toMatchObject({
      result: { state: PodState.POD_STATE_EXITED, apps: [{ state: AppState.APP_STATE_EXITED }] },
    });
  });
});
