import { AppState, Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { describe, expect, it } from "vitest";
import { acceptPod } from "./accept.ts";

type State = "PREPARING" | "PREPARED" | "RUNNING" | "EXITED" | "GARBAGE" | "UNDEFINED" | "DELETING";

const pod = (state: State, codes: Readonly<Record<string, number>> = {}, more: Partial<Pod> = {}) =>
  Pod.fromPartial({
    id: "p",
    state: PodState[`POD_STATE_${state}`],
    apps: Object.entries(codes).map(([name, exit_code]) => ({
      name,
      exit_code,
      state: AppState.APP_STATE_UNDEFINED,
      image: { id: "sha512-1", name: "sim.example/worker", version: "1.2.0" },
    })),
    ...more,
  });

const nameless = (state: State) => {
  const listed = pod(state, { a: 0 });
  return { ...listed, apps: listed.apps.map((app) => ({ ...app, image: { ...app.image, name: "", version: "" } })) };
};

const codesOf = (accepted: Pod) => accepted.apps.map(({ exit_code }) => exit_code);

describe("acceptPod", () => {
  it.each<[string, Pod | undefined, Pod, number[]]>([
    ["a first code is taken", undefined, pod("EXITED", { a: 7 }), [7]],
    ["a late code is taken", pod("EXITED", { a: 0 }), pod("EXITED", { a: 7 }), [7]],
    ["a code stays when the pod ends", pod("RUNNING", { a: 7 }), pod("EXITED", { a: 0 }), [7]],
    ["a code stays when the pod is marked", pod("EXITED", { a: 7 }), pod("GARBAGE", { a: 0 }), [7]],
    ["zero in a running pod is a new start", pod("RUNNING", { a: 7 }), pod("RUNNING", { a: 0 }), [0]],
    ["another code is taken", pod("RUNNING", { a: 7 }), pod("EXITED", { a: 15 }), [15]],
    ["-1 leaves what is known", pod("RUNNING", { a: 7 }), pod("RUNNING", { a: -1 }), [7]],
    ["-1 is not known", undefined, pod("PREPARED", { a: -1 }), [0]],
    ["apps go by their names", pod("RUNNING", { a: 7, b: 8 }), pod("EXITED", { b: 0, c: 0 }), [8, 0]],
    ["a deleted pod is as listed", pod("EXITED", { a: 7 }), pod("UNDEFINED", { a: 0 }), [0]],
    ["also by its own name", pod("EXITED", { a: 7 }), pod("DELETING", { a: 0 }), [0]],
  ])("%s", (_, before, listed, codes) => expect(codesOf(acceptPod(before, listed))).toEqual(codes));

  it("keeps times and pid that an answer lacks, in a pod that runs or ran", () => {
    const before = pod("RUNNING", {}, { pid: 12, created_at: 5n, started_at: 6n });
    const lacking = { pid: -1, created_at: 0n, started_at: 0n };
    expect(acceptPod(before, pod("EXITED", {}, lacking))).toMatchObject({ pid: 12, created_at: 5n, started_at: 6n });
    expect(
      acceptPod(before, pod("GARBAGE", {}, { pid: 13, created_at: 7n, started_at: 8n, gc_marked_at: 9n })),
    ).toEqual(pod("GARBAGE", {}, { pid: 13, created_at: 7n, started_at: 8n, gc_marked_at: 9n }));
    expect(acceptPod(undefined, pod("EXITED", {}, lacking))).toMatchObject(lacking);
    expect(acceptPod(before, pod("UNDEFINED", {}, lacking))).toMatchObject(lacking);
    // A preparation that only seemed to have been given up may have had the pid of what came after.
    expect(acceptPod(pod("PREPARING", {}, { pid: 12 }), pod("PREPARED", {}, { pid: -1 })).pid).toBe(-1);
  });

  it("keeps the name of an app's image, not its version alone", () => {
    const image = { id: "sha512-1", name: "sim.example/worker", version: "1.2.0" };
    expect(acceptPod(pod("RUNNING", { a: 0 }), nameless("EXITED") as Pod).apps[0]?.image).toMatchObject(image);
    expect(acceptPod(pod("EXITED", { a: 0 }), nameless("UNDEFINED") as Pod)).toEqual(nameless("UNDEFINED"));
    expect(acceptPod(undefined, nameless("EXITED") as Pod).apps[0]?.image).toMatchObject({ name: "", version: "" });
    const unnamed = Pod.fromPartial({ id: "p", state: PodState.POD_STATE_EXITED, apps: [{ name: "a" }] });
    expect(acceptPod(pod("RUNNING", { a: 0 }), unnamed).apps[0]?.image).toMatchObject(image);
    expect(acceptPod(undefined, unnamed).apps[0]?.image).toBeUndefined();
  });

  it("takes the rest as listed: networks, cgroup, annotations, manifest, unknown fields", () => {
    const before = pod("RUNNING", {}, { cgroup: "/a", networks: [{ name: "default", ipv4: "1", ipv6: "" }] });
    const listed = Pod.decode(Buffer.concat([Pod.encode(pod("GARBAGE")).finish(), Buffer.from([0xf8, 0x07, 0x01])]));
    expect(Buffer.from(Pod.encode(acceptPod(before, listed)).finish())).toEqual(
      Buffer.from(Pod.encode(listed).finish()),
    );
  });

  it("is idempotent, and changes neither argument", () => {
    const before = Object.freeze(pod("RUNNING", { a: 7 }, { pid: 3, started_at: 4n }));
    const listed = Object.freeze(pod("EXITED", { a: 0 }, { pid: -1 }));
    const accepted = acceptPod(before, listed);
    expect(acceptPod(accepted, listed)).toEqual(accepted);
    expect(acceptPod(accepted, accepted)).toEqual(accepted);
  });
});
