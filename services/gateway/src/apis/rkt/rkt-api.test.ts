import {
  GetInfoResponse,
  Image,
  Info,
  InspectImageRequest,
  InspectPodRequest,
  InspectPodResponse,
  ListImagesRequest,
  ListImagesResponse,
  ListPodsRequest,
  ListPodsResponse,
  Pod,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordedCalls } from "./testing/recorded-calls.ts";
import { type Harness, rktHarness } from "./testing/rkt-harness.ts";

let on: Harness;
beforeAll(async () => {
  on = await rktHarness();
});
afterAll(() => on[Symbol.asyncDispose]());

const podsOf = (wire: Uint8Array) =>
  ListPodsResponse.decode(wire).pods.map((pod) => [pod.id, Pod.encode(pod).finish()] as const);
const imagesOf = (wire: Uint8Array) =>
  ListImagesResponse.decode(wire).images.map((image) => [image.id, Image.encode(image).finish()] as const);

describe("answers are a real rkt's, byte for byte", () => {
  const calls = recordedCalls("06-filters");
  const of = (rpc: string) => calls.filter((call) => call.rpc === rpc);
  const detailed = (rpc: string) => of(rpc).find(({ tag }) => tag === "detail")?.wire ?? new Uint8Array();

  beforeAll(() => {
    on.hold("rkt.pods", Object.fromEntries(podsOf(detailed("ListPods")).toReversed()));
    on.hold("rkt.images", Object.fromEntries(imagesOf(detailed("ListImages"))));
  });

  it.each(of("ListPods"))("ListPods: $tag", async ({ request, wire }) => {
    const { bytes } = await on.api.listPods(ListPodsRequest.fromJSON(request), on.context());
    expect(Buffer.from(bytes)).toEqual(wire);
  });

  it.each(of("InspectPod"))("InspectPod: $tag", async ({ request, wire }) => {
    const { bytes } = await on.api.inspectPod(InspectPodRequest.fromJSON(request), on.context());
    expect(Buffer.from(bytes)).toEqual(wire);
  });

  it.each(of("InspectImage"))("InspectImage: $tag", async ({ request, wire }) => {
    const { bytes } = await on.api.inspectImage(InspectImageRequest.fromJSON(request), on.context());
    expect(Buffer.from(bytes)).toEqual(wire);
  });

  // But for the order: rkt's changes from call to call.
  it.each(of("ListImages"))("ListImages: $tag", async ({ request, wire = Buffer.alloc(0) }) => {
    const { bytes } = await on.api.listImages(ListImagesRequest.fromJSON(request), on.context());
    const found = imagesOf(bytes);
    expect(found.map(([id]) => id)).toEqual(found.map(([id]) => id).sort());
    expect(new Map(found)).toEqual(new Map(imagesOf(wire)));
  });
});

describe("errors are a real rkt's", () => {
  const calls = recordedCalls("07-errors").filter(({ error }) => error?.code === 2);
  beforeAll(() => {
    const ids = ["feed0000-0000-4000-8000-000000000001", "feed0000-0000-4000-8000-000000000002"];
    on.hold("rkt.pods", Object.fromEntries(ids.map((id) => [id, Pod.encode(Pod.fromPartial({ id })).finish()])));
    on.hold("rkt.images", { "sha512-24d9": new Uint8Array() });
  });

  it.each(calls.filter(({ rpc }) => rpc === "InspectPod"))("InspectPod: $tag", async ({ request, error }) => {
    const pending = on.api.inspectPod(InspectPodRequest.fromJSON(request), on.context());
    await expect(pending).rejects.toMatchObject({ code: 2, message: error?.details });
  });

  // That of an image which was cached is the server's own affair.
  const images = calls.filter(({ rpc, tag }) => rpc === "InspectImage" && tag !== "image removed, was cached");
  it.each(images)("InspectImage: $tag", async ({ request, error }) => {
    const pending = on.api.inspectImage(InspectImageRequest.fromJSON(request), on.context());
    await expect(pending).rejects.toMatchObject({ code: 2, message: error?.details });
  });

  it.each(["feed0000-0000-4000-8000-000000000002", "FEED0000-0000-4000-8000-000000000002"])(
    "no error: %s",
    async (id) => {
      const { bytes } = await on.api.inspectPod({ id }, on.context());
      expect(InspectPodResponse.decode(bytes).pod?.id).toBe(id.toLowerCase());
    },
  );
});

describe("state that is not recorded yet", () => {
  beforeAll(() => {
    for (const collection of ["rkt.info", "rkt.pods", "rkt.images"]) on.hold(collection, {});
  });

  it("is an Info without texts", async () => {
    const { bytes } = await on.api.getInfo({}, on.context());
    expect(GetInfoResponse.decode(bytes).info).toEqual(Info.create());
  });

  it("is lists without entries", async () => {
    const pods = await on.api.listPods(ListPodsRequest.create(), on.context());
    const images = await on.api.listImages(ListImagesRequest.create(), on.context());
    expect([pods.bytes.byteLength, images.bytes.byteLength]).toEqual([0, 0]);
  });
});

describe("fields beside a request", () => {
  it("goes to query, and the answer's position comes back", async () => {
    on.session("01S", { ended: true });
    on.hold("rkt.info", {
      info: GetInfoResponse.encode({ info: Info.fromPartial({ rkt_version: "1.30.0" }) }).finish(),
    });
    const { head, bytes } = await on.api.getInfo({}, on.context({ session: "01S", at: "x-5", minPosition: "x-4" }));
    expect(on.requests.at(-1)).toMatchObject({
      collection: "rkt.info",
      session: "01S",
      at: "x-5",
      min_position: "x-4",
    });
    expect(head).toEqual({ position: on.position(7), session: "01S", sessionEnded: true, heardAt: {} });
    expect(GetInfoResponse.decode(bytes).info?.rkt_version).toBe("1.30.0");
  });

  it("is refused as everywhere", async () => {
    const source = on.api.listPods(ListPodsRequest.create(), on.context({ source: "nobody/host/rkt" }));
    await expect(source).rejects.toMatchObject({ name: "TapedeckError", code: "unknown_source" });
    const before = on.api.listPods(ListPodsRequest.create(), on.context({ at: "before" }));
    await expect(before).rejects.toMatchObject({ code: "before_first", details: { earliest: "e-1" } });
  });
});

it("fields of a pod that we don't know are passed on, without its manifest too", async () => {
  const later = Buffer.from([0xf2, 0x3f, 2, 1, 2]); // field 1022
  const known = Pod.encode(Pod.fromPartial({ id: "a", manifest: Buffer.from("{}"), cgroup: "/x" })).finish();
  on.hold("rkt.pods", { a: Buffer.concat([known, later]) });
  const { bytes } = await on.api.listPods(ListPodsRequest.create(), on.context());
  const [pod] = ListPodsResponse.decode(bytes).pods;
  expect(pod).toMatchObject({ id: "a", cgroup: "/x", manifest: Buffer.alloc(0) });
  expect(Buffer.from(bytes).includes(later)).toBe(true);
});
