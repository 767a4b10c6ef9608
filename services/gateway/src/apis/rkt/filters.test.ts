import {
  EventFilter,
  Image,
  ImageFilter,
  ListImagesRequest,
  ListImagesResponse,
  ListPodsRequest,
  ListPodsResponse,
  Pod,
  PodFilter,
  Event as RktEvent,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { describe, expect, it } from "vitest";
import { eventMatches, imagePasses, podPasses } from "./filters.ts";
import { recordedCalls } from "./testing/recorded-calls.ts";

const calls = recordedCalls("06-filters");
const of = (rpc: string) => calls.filter((call) => call.rpc === rpc);
const wireOf = (rpc: string, tag: string) => of(rpc).find((call) => call.tag === tag)?.wire ?? new Uint8Array();

describe("the answers of a real rkt", () => {
  const pods = ListPodsResponse.decode(wireOf("ListPods", "detail")).pods;
  const images = ListImagesResponse.decode(wireOf("ListImages", "detail")).images;

  it("has something to choose from", () => {
    expect([pods.length, images.length]).toEqual([7, 4]);
  });

  it.each(of("ListPods"))("pods: $tag", ({ request, wire = new Uint8Array() }) => {
    const passes = podPasses(ListPodsRequest.fromJSON(request).filters);
    const found = pods.filter((pod) => passes(Pod.encode(pod).finish()));
    expect(found.map(({ id }) => id)).toEqual(ListPodsResponse.decode(wire).pods.map(({ id }) => id));
  });

  it.each(of("ListImages"))("images: $tag", ({ request, wire = new Uint8Array() }) => {
    const passes = imagePasses(ListImagesRequest.fromJSON(request).filters);
    const found = images.filter((image) => passes(Image.encode(image).finish()));
    expect(found.map(({ id }) => id)).toEqual(ListImagesResponse.decode(wire).images.map(({ id }) => id));
  });
});

const pairs = (...all: readonly (readonly [string, string])[]) => all.map(([Key, value]) => ({ Key, value }));

it.each<[string, Partial<Pod>, Partial<PodFilter>, boolean]>([
  [
    "the first annotation of a key",
    { annotations: pairs(["a", "1"], ["a", "2"]) },
    { annotations: pairs(["a", "1"]) },
    true,
  ],
  ["not the second", { annotations: pairs(["a", "1"], ["a", "2"]) }, { annotations: pairs(["a", "2"]) }, false],
  ["a key without a value: the empty one", { annotations: pairs(["a", ""]) }, { annotations: pairs(["a", ""]) }, true],
  ["which is not the same as none", {}, { annotations: pairs(["a", ""]) }, false],
  ["a pod that is being deleted, by UNDEFINED", { state: 0 }, { states: [0] }, true],
  ["a pod at the root of all cgroups", { cgroup: "/" }, { pod_sub_cgroups: ["/machine.slice"] }, true],
  ["a pod without a cgroup is in none", { cgroup: "" }, { pod_sub_cgroups: ["/machine.slice"] }, false],
  [
    "an image id as the pod has it",
    { apps: [{ name: "", image: Image.fromPartial({ id: "x" }), state: 0, exit_code: 0, annotations: [] }] },
    { image_ids: ["x"] },
    true,
  ],
])("pods: %s", (_, pod, filter, passes) => {
  expect(podPasses([PodFilter.fromPartial(filter)])(Pod.encode(Pod.fromPartial(pod)).finish())).toBe(passes);
});

it.each<[string, Partial<Image>, Partial<ImageFilter>, boolean]>([
  [
    "the first label of a key",
    { labels: pairs(["os", "linux"], ["os", "bsd"]) },
    { labels: pairs(["os", "bsd"]) },
    false,
  ],
  ["a name without a path is its own base", { name: "web" }, { base_names: ["web"] }, true],
  ["times of 0 and less are none", { import_timestamp: 5n }, { imported_before: -1n, imported_after: 0n }, true],
])("images: %s", (_, image, filter, passes) => {
  expect(imagePasses([ImageFilter.fromPartial(filter)])(Image.encode(Image.fromPartial(image)).finish())).toBe(passes);
});

it.each<[string, Partial<EventFilter>, boolean]>([
  ["no field", {}, true],
  ["any of the types", { types: [3, 4] }, true],
  ["none of the types", { types: [4] }, false],
  ["a whole id", { ids: ["pod-1"] }, true],
  ["no prefix of an id", { ids: ["pod"] }, false],
  ["a name", { names: ["x", "web"] }, true],
  ["all fields, one of which does not match", { types: [3], ids: ["pod-1"], names: ["x"] }, false],
  ["since the second before", { since_time: 9n }, true],
  ["not since its own second", { since_time: 10n }, false],
  ["until the second after", { until_time: 11n }, true],
  ["not until its own second", { until_time: 10n }, false],
])("events: %s", (_, filter, passes) => {
  const event = RktEvent.fromPartial({ type: 3, id: "pod-1", from: "web", time: 10n });
  expect(eventMatches(event, EventFilter.fromPartial(filter))).toBe(passes);
});
