import { Image, ListImagesResponse, ListPodsResponse, Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { imageEntries, listOf, podEntries } from "./entries.ts";

const pod = (id: string) =>
  Buffer.from(
    Pod.encode(Pod.fromPartial({ id, state: PodState.POD_STATE_RUNNING, manifest: Buffer.from("{}") })).finish(),
  );
const image = (id: string) =>
  Buffer.from(Image.encode(Image.fromPartial({ id, base_format: { version: "0.8.11" }, size: 7n })).finish());

describe("entries", () => {
  it("slices a list of pods into their own bytes, in their order", () => {
    const list = listOf([pod("b"), pod("a")]);
    expect(ListPodsResponse.decode(list).pods.map(({ id }) => id)).toEqual(["b", "a"]);
    expect(podEntries(list)).toEqual([
      { id: "b", bytes: pod("b") },
      { id: "a", bytes: pod("a") },
    ]);
  });

  it("slices a list of images, whose id is another field", () => {
    const list = ListImagesResponse.encode({ images: [Image.decode(image("sha512-1"))] }).finish();
    expect(imageEntries(list)).toEqual([{ id: "sha512-1", bytes: image("sha512-1") }]);
  });

  it("keeps bytes that another encoder would write differently, and unknown fields", () => {
    const odd = Buffer.concat([pod("a"), Buffer.from([0xf8, 0x07, 0x81, 0x00])]);
    const list = Buffer.concat([Buffer.from([0x10, 0x05]), listOf([odd]), Buffer.from([0x1a, 0x01, 0x61])]);
    expect(podEntries(list)).toEqual([{ id: "a", bytes: odd }]);
  });

  it("gives views, not copies", () => {
    const list = listOf([pod("a")]);
    expect(podEntries(list)?.[0]?.bytes.buffer).toBe(list.buffer);
  });

  it("has no entries for an empty answer, and an empty id for an entry without one", () => {
    expect(podEntries(Buffer.alloc(0))).toEqual([]);
    expect(podEntries(listOf([Buffer.alloc(0)]))).toEqual([{ id: "", bytes: Buffer.alloc(0) }]);
  });

  it("recognises a list among any bytes, as the generated code does at the top level", () => {
    expect(podEntries(Buffer.from([0x0a, 0x05, 0x01]))).toBeUndefined();
    expect(podEntries(listOf([Buffer.from([0x0a, 0x05, 0x01])]))).toBeUndefined();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const entries = podEntries(bytes);
        if (entries !== undefined) expect(podEntries(listOf(entries.map((entry) => entry.bytes)))).toEqual(entries);
      }),
      { numRuns: 500 },
    );
  });
});
