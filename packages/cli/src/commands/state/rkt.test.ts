import { readFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { type RktStateJson, rktText } from "./rkt.ts";

type RecordedRow = {
  readonly at: string;
  readonly rpc?: string;
  readonly tag?: string;
  readonly response?: Partial<RktStateJson>;
};

/** What the real one answered, as JSON: that of the API is the same. */
function recorded(
  recording: string,
  is: (row: RecordedRow) => boolean,
): { answer: Partial<RktStateJson>; now: number } {
  const file = new URL(`../../../../fakes/recordings/rkt/${recording}/timeline.jsonl`, import.meta.url);
  const rows = readFileSync(file, "utf8").trim().split("\n");
  const found = rows
    .map((line) => JSON.parse(line) as RecordedRow)
    .find((row) => row.response !== undefined && is(row));
  return { answer: found?.response ?? expect.fail("no such row"), now: Date.parse(found?.at ?? "") };
}

const shown = (state: RktStateJson, ends: ReadonlyMap<string, string>, now: number) =>
  stripVTControlCharacters(rktText(state, ends, now));

it("shows the host, a row for each app with the code that it ended with, and the images", () => {
  const { answer: pods, now } = recorded("06-filters", ({ rpc, tag }) => rpc === "ListPods" && tag === "no filter");
  const { answer: images } = recorded("06-filters", ({ rpc, tag }) => rpc === "ListImages" && tag === "no filter");
  const { answer: info } = recorded("01-full-lifecycle", ({ rpc }) => rpc === "GetInfo");
  const exited = pods.pods?.find(({ state }) => state === "POD_STATE_EXITED")?.id ?? "";
  const ends = new Map([[exited, new Date(now - 12_000).toISOString()]]);
  const state = { info: null, images: [], pods: [], ...pods, ...images, ...info };
  expect(shown(state, ends, now)).toMatchInlineSnapshot(`
    "rkt 1.30.0+git171c416f, /var/lib/rkt/data/01-full-lifecycle

    POD       STATE            SINCE     APP   STATE      IMAGE
    431b500c  garbage          1 s ago   web   exited 0   sim.example/worker:1.2.0
                                         log   exited 0   sim.example/tools/sidecar:latest
    1a5cd09a  garbage          1 s ago   job   exited 7   other.example/batch:0.0.7
    ce582734  exited           12 s ago  web   exited 15  sim.example/worker:1.2.0
                                         job   exited 7   other.example/batch:0.0.7
    e8870536  prepared         now       web   -          sim.example/worker:1.2.0
                                         web2  -          sim.example/worker:1.2.0
    67e3348c  running          now       web   running    sim.example/worker:1.2.0
                                         log   running    sim.example/tools/sidecar:latest
    f108d567  running          now       log   running    sim.example/tools/sidecar:latest
    4f27d260  aborted prepare  -         -     -          -

    IMAGE                                SIZE  IMPORTED  ID
    other.example/batch:0.0.7         4.1 MiB  2 s ago   sha512-1b245c2a6e56
    sim.example/stage1:0.2.0          5.2 MiB  now       sha512-f04fbe44fba5
    sim.example/tools/sidecar:latest  4.1 MiB  2 s ago   sha512-71eb6aaf8b3d
    sim.example/worker:1.2.0          4.1 MiB  2 s ago   sha512-24d9a700efd7"
  `);
});

it("says what rkt has no state for: a pod that is being deleted", () => {
  const { answer, now } = recorded(
    "01-full-lifecycle",
    ({ response }) => response?.pods?.[0]?.state === undefined && response?.pods?.length === 1,
  );
  const output = shown({ info: null, images: [], pods: [], ...answer }, new Map(), now);
  expect(output).toMatchInlineSnapshot(`
    "POD       STATE     SINCE  APP      STATE  IMAGE
    c6e226b0  deleting  -      worker   -      sim.example/worker:1.2.0
                               batch    -      other.example/batch:0.0.7
                               sidecar  -      sim.example/tools/sidecar:latest

    No images."
  `);
});

it("names pods that kubelet named, and nothing where nothing is", () => {
  const annotations = [{ Key: "rkt.kubernetes.io/name", value: "web-1" }];
  const pod = { id: "c6e226b0-5014-480c-b875-eb38a29bed83", state: "POD_STATE_PREPARING", annotations };
  expect(shown({ info: null, images: [], pods: [pod] }, new Map(), 0)).toContain("c6e226b0 web-1  preparing  -");
  expect(shown({ info: null, images: [], pods: [] }, new Map(), 0)).toBe("No pods.\n\nNo images.");
});
