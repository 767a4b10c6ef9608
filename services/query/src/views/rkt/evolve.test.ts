import { Image, Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { describe, expect, it } from "vitest";
import { type RktSession, rktHost, rktSession, uuid } from "../../testing/rkt-scenario.ts";
import { type Fields, scenario } from "../../testing/scenario.ts";
import { stateItems } from "../states/fold.ts";
import { evolve } from "./evolve.ts";
import { rkt } from "./fold.ts";
import { itemsOf } from "./inventory.ts";
import { initialState, type RktState } from "./state.ts";

const pod = uuid(1);
const other = uuid(2);

function reported(given: (host: RktSession) => void): readonly Event[] {
  const script = scenario(rktHost);
  given(rktSession("S", script));
  return script.events;
}

function fold(events: readonly Event[], from: RktState = initialState): RktState {
  return events.reduce(evolve, from);
}

function pods(state: RktState): Pod[] {
  return itemsOf(state.pods).map(({ bytes }) => Pod.decode(Buffer.from(bytes, "base64")));
}

function podIds(state: RktState): string[] {
  return itemsOf(state.pods).map(({ id }) => id);
}

/** An event that no watcher would give so. */
function odd(fields: Fields & { readonly kind: string }): Event {
  return scenario(rktHost).add({ session: "S", channel: "pods", ...fields });
}

it("keeps a pod as last listed, with its manifest, until it is removed", () => {
  const events = reported((host) => {
    host.prepared(pod, ["web"]);
    host.started(pod);
    host.exited(pod, [7]);
  });
  const state = fold(events);
  expect(pods(state)).toMatchObject([
    { id: pod, state: PodState.POD_STATE_EXITED, apps: [{ name: "web", exit_code: 7 }], pid: 4_711 },
  ]);
  expect(pods(state)[0]?.manifest.toString()).toContain("PodManifest");
  const removal = reported((host) => host.removed(pod));
  expect(fold(removal, state)).toEqual(initialState);
});

it("accepts a listed pod as the normalizer does: a reported exit code stays", () => {
  const state = fold(
    reported((host) => {
      host.prepared(pod, ["web"]);
      host.exited(pod, [7]);
      host.exited(pod, [0]);
    }),
  );
  expect(pods(state)[0]?.apps[0]?.exit_code).toBe(7);
});

it.each([
  ["never ran", false, false],
  ["vanished while it ran", true, false],
  ["was reported to be collected before", true, true],
])("a pod that %s is gone when it is removed", (_title, isStarted, isMarked) => {
  const events = reported((host) => {
    host.prepared(pod, ["web"]);
    if (isStarted) host.started(pod);
    if (isMarked) host.marked(pod);
    host.prepared(other, []);
    host.removed(pod);
  });
  expect(podIds(fold(events))).toEqual([other]);
});

it("a pod that is marked or being deleted is still on the host", () => {
  const state = fold(
    reported((host) => {
      host.prepared(pod, ["web"]);
      host.marked(pod);
      host.deleting(pod);
    }),
  );
  expect(pods(state)).toMatchObject([{ id: pod, state: PodState.POD_STATE_UNDEFINED, created_at: 0n }]);
});

it("keeps images until they are removed, and the host's own information", () => {
  const events = reported((host) => {
    host.began("/data");
    host.imported({ id: "sha512-a", name: "example.com/web" });
    host.imported({ id: "sha512-b", size: 5n });
    host.imported({ id: "sha512-b", size: 6n });
    host.imageRemoved("sha512-a");
  });
  const state = fold(events);
  const images = itemsOf(state.images).map(({ bytes }) => Image.decode(Buffer.from(bytes, "base64")));
  expect(images).toMatchObject([{ id: "sha512-b", size: 6n }]);
  const items = stateItems(rkt, "info", state) ?? [];
  expect(items.map(({ key }) => key)).toEqual(["info"]);
  expect(Buffer.from(items[0]?.bytes ?? []).toString()).toContain("/data");
});

describe("a description", () => {
  const three = reported((host) => {
    host.prepared(uuid(7), ["old"]);
    host.prepared(uuid(8), ["old"]);
    host.imported({ id: "sha512-a" });
  });
  const description = (parts: number, between: (host: RktSession) => void = () => {}) =>
    reported((host) => {
      for (const number of [1, 2, 3, 4, 5, 8]) host.prepared(uuid(number), [`app${number}`]);
      host.described("pods", parts, () => between(host));
    }).slice(6);
  const listed = [1, 2, 3, 4, 5, 8].map(uuid).toSorted();

  it.each([1, 2, 3])("sets what its %i parts list, and removes what none of them lists", (parts) => {
    const state = fold([...three, ...description(parts)]);
    expect(podIds(state)).toEqual(listed);
    expect(pods(state).find(({ id }) => id === uuid(8))?.apps[0]?.name).toBe("app8");
    expect(itemsOf(state.images)).toHaveLength(1);
    expect(state.pods.describing).toBeNull();
  });

  it("removes nothing before its last part", () => {
    const state = fold([...three, ...description(3).slice(0, 2)]);
    expect(podIds(state)).toContain(uuid(7));
  });

  it("may have events of other channels between its parts", () => {
    const events = description(3, (host) => {
      host.imported({ id: "sha512-b" });
      host.text(pod, "line");
    });
    expect(podIds(fold([...three, ...events]))).toEqual(listed);
  });

  it.each([
    ["was broken off and begun again", [0, 1, 0], false],
    ["lacks a part", [0, 2], false],
    ["lacks its first part", [1, 2], false],
    ["was broken off, and then came whole", [0, 1, 0, 1, 2], true],
  ] as const)("takes away only when it is whole: it %s", (_title, order, isWhole) => {
    const parts = description(3);
    const state = fold([...three, ...order.map((part) => parts[part] ?? expect.fail())]);
    expect(podIds(state).includes(uuid(7))).toBe(!isWhole);
  });

  it("removes nothing when a part can't be decoded", () => {
    const original = { type: "v1alpha.ListPodsResponse", bytes: Buffer.of(0xff), size: 1n };
    const parts = description(3).map((event, part) => (part === 1 ? Event.fromPartial({ ...event, original }) : event));
    expect(podIds(fold([...three, ...parts]))).toContain(uuid(7));
  });

  it("removes everything when the host is empty and its message has no bytes", () => {
    const events = reported((host) => host.described("pods"));
    expect(podIds(fold([...three, ...events]))).toEqual([]);
  });

  it("changes nothing when it lists what is known", () => {
    const events = reported((host) => {
      host.prepared(pod, ["web"]);
      host.started(pod);
      host.described("pods");
    });
    const before = fold(events.slice(0, -1));
    expect(fold(events.slice(-1), before)).toBe(before);
  });
});

describe("gives the very same object back for", () => {
  const host = reported((one) => {
    one.began();
    one.prepared(pod, ["web", "api"]);
    one.started(pod);
    one.imported({ id: "sha512-a" });
  });
  const state = fold(host);
  const huge = { type: "v1alpha.Pod", bytes: Buffer.alloc(0), size: 8_000_000n };

  it.each([
    ["its last fact", host.at(-1)],
    ["facts without a pod of their own", host.find(({ kind }) => kind === "app.started")],
    ["the same description of itself", host.find(({ kind }) => kind === "session.described")],
    ["text", reported((one) => one.text(pod, "x"))[0]],
    ["a pod that is not there", reported((one) => one.removed(other))[0]],
    ["an image that is not there", reported((one) => one.imageRemoved("sha512-z"))[0]],
    ["a pod that can't be read", odd({ kind: "pod.changed", original: { ...huge, bytes: Buffer.of(0xff), size: 1n } })],
    ["a pod too large for the log", odd({ kind: "pod.changed", original: huge })],
    ["a pod without an id", odd({ kind: "pod.changed", original: { ...huge, size: 0n } })],
    ["bytes that are unreadable", odd({ kind: "upstream.unreadable", original: { ...huge, size: 0n } })],
    [
      "a description without its bytes",
      odd({ kind: "inventory.described", detail: { $case: "host", value: { parts: 1 } } }),
    ],
    ["another channel's pods", { ...(host[2] as Event), channel: "v1" }],
  ])("%s", (_title, event) => {
    expect(evolve(state, event ?? expect.fail())).toBe(state);
  });
});

it.each(["__proto__", "constructor", "a", "toString"])("a pod may have any id: %s", (id) => {
  const state = fold(reported((host) => host.prepared(id, ["web"])));
  const stored = JSON.parse(JSON.stringify(state)) as RktState;
  expect(podIds(stored)).toEqual([id]);
  expect(
    podIds(
      fold(
        reported((host) => host.removed(id)),
        stored,
      ),
    ),
  ).toEqual([]);
});

it("is plain JSON, also in the middle of a description", () => {
  const state = fold(
    reported((host) => {
      host.began();
      host.prepared(pod, ["web"]);
      host.described("pods", 2);
    }).slice(0, -1),
  );
  expect(state.pods.describing).not.toBeNull();
  expect(JSON.parse(JSON.stringify(state))).toStrictEqual(state);
});

it("an event of a large host copies one bucket", () => {
  const events = reported((host) => {
    for (let number = 1; number <= 2_000; number += 1) host.prepared(uuid(number), ["web"]);
    host.started(pod);
  });
  const before = fold(events.filter(({ kind }) => kind === "pod.prepared"));
  const after = fold(events.slice(2_000), before);
  const shared = Object.keys(before.pods.buckets).filter(
    (name) => before.pods.buckets[name] === after.pods.buckets[name],
  );
  expect(shared.length).toBe(Object.keys(before.pods.buckets).length - 1);
  expect(shared.length).toBeGreaterThan(200);
});
