import { Image } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { beforeEach, describe, expect, it } from "vitest";
import { fact, frame } from "../../inventory/testing/outcome-fields.ts";
import { eventsOf, image, type Play, play, timesOf } from "../testing/host-play.ts";

const a = image("sha512-a", { imported: 1 });
let harness: Play;
beforeEach(() => {
  harness = play();
  harness.images(10_000, a);
});

describe("images", () => {
  it("are imported when they are new, at the time that rkt has for it", () => {
    expect(harness.images(12_000, image("sha512-b", { imported: 11 }), a)).toEqual([
      frame(fact("image.imported", "sha512-b")),
    ]);
    expect(timesOf(harness, "image.imported")).toEqual([{ observed: 12_000, occurred: 11_000 }]);
    const seen = harness.record.at(-1)?.seen;
    expect(seen).toMatchObject({
      original: {
        type: "v1alpha.Image",
        bytes: Buffer.from(Image.encode(image("sha512-b", { imported: 11 })).finish()),
      },
      facts: [
        {
          subject: "sha512-b",
          summary: "image sim.example/worker:1.2.0 imported",
          detail: { value: { image: "sha512-b", name: "sim.example/worker", version: "1.2.0", size: 5n } },
        },
      ],
    });
  });

  it("are imported between two observations when rkt has no time", () => {
    expect(harness.images(12_000, a, image("sha512-b"))).toEqual([frame(fact("image.imported", "sha512-b"))]);
    expect(timesOf(harness, "image.imported")).toEqual([{ observed: 12_000, after: 10_000 }]);
  });

  it("do not depend on the order of the list", () => {
    harness.images(11_000, a, image("sha512-b"));
    expect(harness.images(12_000, image("sha512-b"), a)).toEqual([]);
  });

  it("change when their size or import time does, which is no import", () => {
    expect(harness.images(11_000, image("sha512-a", { imported: 1, size: 10 }))).toEqual([
      frame(fact("image.changed", "sha512-a")),
    ]);
    expect(harness.images(12_000, image("sha512-a", { imported: 5, size: 10 }))).toEqual([
      frame(fact("image.changed", "sha512-a")),
    ]);
    expect(harness.images(13_000, image("sha512-a", { imported: 5, size: 10 }))).toEqual([]);
  });

  it("are removed when two observations in a row missed them, at the first of them", () => {
    const b = image("sha512-b");
    harness.images(11_000, a, b);
    expect([harness.images(12_000, b), harness.same("images", 13_000), harness.images(14_000, b)]).toEqual([
      [],
      [frame(fact("image.removed", "sha512-a"))],
      [],
    ]);
    expect(timesOf(harness, "image.removed")).toEqual([{ observed: 12_000, after: 11_000 }]);
    expect(harness.record.at(-1)?.seen).toMatchObject({
      facts: [{ summary: "image sim.example/worker:1.2.0 removed" }],
    });
    expect(harness.record.at(-1)?.seen).not.toHaveProperty("original");
  });

  it("are removed as soon as rkt says that they are missing on disk", () => {
    expect([
      harness.images(11_000),
      harness.refused("images", 11_001, a.id, `no such image with ID "${a.id}"`),
    ]).toEqual([[], [frame(fact("image.removed", "sha512-a"))]]);
    expect(timesOf(harness, "image.removed")).toEqual([{ observed: 11_000, after: 10_000 }]);
  });

  it("are not removed by an error that may have other reasons, or while they are listed", () => {
    const missing = `no such image with ID "${a.id}"`;
    expect(harness.refused("images", 10_500, a.id, missing)).toEqual([]);
    harness.images(11_000);
    expect(harness.refused("images", 11_001, a.id, `ACI info not found with blob key "${a.id}"`)).toEqual([]);
    expect(harness.refused("images", 11_002, a.id, "error retrieving image manifest")).toEqual([]);
    expect(harness.refused("images", 11_003, a.id, missing, 14)).toEqual([]);
    expect(harness.images(12_000, a)).toEqual([]);
  });

  it("are there when they are found by name", () => {
    const answer = { $case: "one", value: { id: a.id, code: 0, message: "" } } as const;
    harness.images(11_000);
    const bytes = Buffer.concat([Buffer.from([0x0a, Image.encode(a).finish().length]), Image.encode(a).finish()]);
    expect(harness.observation("images", 11_001, { ...answer, value: { ...answer.value, bytes } })).toEqual([]);
    expect([harness.images(12_000), harness.images(13_000)]).toEqual([[], [frame(fact("image.removed", "sha512-a"))]]);
    expect(timesOf(harness, "image.removed")).toEqual([{ observed: 12_000, after: 11_001 }]);
  });

  it("come back with a time of their own, unless it is a cached one from before the removal", () => {
    const comesBack = (imported: number) => {
      harness.images(20_000);
      harness.images(21_000);
      return harness.images(25_000, image("sha512-a", { imported }));
    };
    expect(comesBack(1)).toEqual([frame(fact("image.imported", "sha512-a"))]);
    expect(timesOf(harness, "image.imported")).toEqual([{ observed: 25_000, after: 21_000 }]);
    for (const [imported, time] of [
      [20, { after: 21_000 }],
      [21, { occurred: 21_000 }],
    ] as const) {
      harness = play();
      harness.images(10_000, a);
      comesBack(imported);
      expect(timesOf(harness, "image.imported")).toEqual([{ observed: 25_000, ...time }]);
    }
  });

  it("come back so also to a watcher that was resumed", () => {
    harness.images(20_000);
    harness.images(21_000);
    const later = play();
    for (const event of eventsOf(harness.record)) later.watcher.resume(event);
    expect(later.images(25_000, a)).toEqual([frame(fact("image.imported", "sha512-a"))]);
    expect(timesOf(later, "image.imported")).toEqual([{ observed: 25_000, after: 20_000 }]);
  });
});
