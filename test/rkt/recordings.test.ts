import { join } from "node:path";
import { loadRecording, type RecordedRow, type RecordedUnary } from "@tapedeck/fakes/rkt/recording";
import { GetInfoRequest } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { describe, expect, it } from "vitest";
import { startStack } from "../stack/stack.ts";
import { rktClient } from "./client.ts";
import { rktKinds } from "./events.ts";
import { settled, startRktHost } from "./host.ts";
import { recordedAndServed, recordingsFolder, type Scenario } from "./recorded-and-served.ts";
import { answerOf } from "./steps.ts";

/** A whole life, and errors. `recordings.long.test.ts` has the others. */
const recordings: Readonly<Record<string, Scenario>> = {
  "01-full-lifecycle": { compared: { GetInfo: 1, ListPods: 11, InspectPod: 8, ListImages: 7 }, runs: 4 },
  // Two pods were prepared, one of them was renamed (its id is gone, another one is there), an image was removed.
  "07-errors": {
    compared: { InspectPod: 12, ListPods: 4, InspectImage: 7, ListImages: 2 },
    events: [
      "POD_PREPARED feed-0001 created_at 1795188503",
      "POD_PREPARED feed-0002 created_at 1795188503",
      "POD_PREPARED beef-0002 created_at 1795188503",
      "POD_GARBAGE_COLLECTED feed-0002 look 3 phase=never-ran",
      "IMAGE_REMOVED other.example/batch look 2 version=0.0.7",
    ],
  },
};

for (const [name, scenario] of Object.entries(recordings)) recordedAndServed(name, scenario);

describe("15-listening, one host for each way to start it", () => {
  const recording = loadRecording(join(recordingsFolder, "15-listening"));
  const infos = recording.rows.filter((row): row is RecordedUnary => row.kind === "unary" && row.rpc === "GetInfo");

  it("gives each host's own description and no events", async () => {
    await using cleanup = new AsyncDisposableStack();
    const only = (row: RecordedRow) => startRktHost({ ...recording, rows: [row] });
    const hosts = await Promise.all(infos.map(async (row) => cleanup.use(await only(row))));
    const rkt = hosts.map(({ fake }, index) => ({ address: fake.address, developer: `h${index}`, interval: "10ms" }));
    const stack = cleanup.use(await startStack({ rkt }));
    const client = cleanup.use(rktClient(stack.grpc));
    expect(infos).toHaveLength(5);
    for (const [index, host] of hosts.entries()) {
      await settled(host, stack, "pods");
      const call = infos[index] as RecordedUnary;
      const head = { "tapedeck-source": `h${index}/host` };
      expect(await client.ask("GetInfo", GetInfoRequest.encode({}).finish(), head)).toEqual(answerOf(call));
      for (const rpc of ["ListPods", "ListImages"] as const) {
        expect(await client.ask(rpc, new Uint8Array(), head)).toEqual({ result: [] });
      }
    }
    expect((await stack.events()).filter(({ event }) => rktKinds.has(event.kind))).toEqual([]);
  });
});
