import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { describe, expect, it } from "vitest";
import { described, fact, frame, gap } from "../inventory/testing/outcome-fields.ts";
import {
  eventsOf,
  image,
  type Play,
  type PodFields,
  play,
  pod,
  removedFacts,
  startedFacts,
  timesOf,
} from "./testing/host-play.ts";

const running = (id: string, more: Partial<PodFields> = {}) => pod(id, { state: "RUNNING", ...more });
const stage1 = image("sha512-1");

function gapsOf({ record }: Play) {
  return record.flatMap(({ channel, seen }) =>
    seen.what === "gap"
      ? [{ channel, reason: seen.reason, after: seen.after?.seconds, until: seen.until.seconds }]
      : [],
  );
}

describe("an outage", () => {
  it("is a gap, recorded once for its channel before the facts of the first good observation", () => {
    const harness = play();
    harness.pods(1_000, running("p"));
    harness.images(1_100, stage1);
    expect([harness.failed("pods", 2_000, "failed to get pods"), harness.failed("pods", 3_000, "other")]).toEqual([
      [],
      [],
    ]);
    expect(harness.pods(4_000, running("p", { codes: { a: 7 } }))).toEqual([
      gap,
      frame(fact("app.exited", "p/a", { exit_code: 7 })),
    ]);
    expect(harness.images(4_100, stage1)).toEqual([]);
    expect(gapsOf(harness)).toEqual([
      { channel: "pods", reason: "the pods could not be listed: failed to get pods", after: 1n, until: 4n },
    ]);
    expect(timesOf(harness, "app.exited")).toEqual([{ observed: 4_000, after: 1_000 }]);
    expect(harness.pods(5_000, running("p", { codes: { a: 7 } }))).toEqual([]);
  });

  it("is what there was before a connection, on both channels, but not before the first observation of all", () => {
    const harness = play();
    harness.failed("pods", 500);
    harness.watcher.connected();
    expect([harness.pods(1_000, running("p")), harness.pods(1_001, running("p"))]).toEqual([[described], []]);
    harness.watcher.connected();
    expect(harness.images(1_100, stage1)).toEqual([described]);
    harness.watcher.connected();
    expect([harness.pods(2_000, running("p")), harness.images(2_100, stage1)]).toEqual([[gap], [gap]]);
  });

  it("may have no code but a text, or no text but a code", () => {
    const harness = play();
    harness.pods(1_000);
    harness.observation("pods", 2_000, { $case: "failed", value: { code: 4, message: "" } });
    harness.pods(3_000);
    expect(gapsOf(harness)[0]?.reason).toBe("the pods could not be listed: code 4");
  });

  it("makes an observation that says the same as one of another connection say nothing", () => {
    const harness = play();
    expect(harness.same("pods", 500)).toEqual([]);
    harness.pods(1_000, running("p"));
    harness.pods(2_000);
    harness.watcher.connected();
    expect([harness.same("pods", 3_000), harness.same("pods", 4_000)]).toEqual([[], []]);
    expect(harness.pods(5_000, running("p"))).toEqual([gap]);
    expect(gapsOf(harness)).toEqual([{ channel: "pods", reason: "the pods were not observed", after: 2n, until: 5n }]);
  });

  it("leaves what an observation said the same as, where the connection lives on", () => {
    const harness = play();
    harness.pods(1_000, running("p"));
    harness.failed("pods", 2_000);
    expect(harness.same("pods", 3_000)).toEqual([gap]);
  });
});

describe("a pod that is inspected while no list comes", () => {
  it("has changed after its last inspection, of which the other pods know nothing", () => {
    const harness = play();
    const [p, q] = [running("p"), running("q")];
    const [pEnded, qEnded] = [running("p", { codes: { a: 7 } }), running("q", { codes: { a: 8 } })];
    harness.pods(1_000, p, q);
    expect([harness.inspected(30_000, p), harness.inspected(31_000, pEnded)].flat()).toHaveLength(1);
    harness.pods(40_000, pEnded, qEnded);
    expect(timesOf(harness, "app.exited")).toEqual([
      { observed: 31_000, after: 30_000 },
      { observed: 40_000, after: 1_000 },
    ]);
  });

  it("has changed after its last list, where the inspection proved nothing", () => {
    const harness = play();
    harness.pods(1_000, running("p"));
    harness.pods(2_000, running("p"));
    // Exit code zero is held until a second answer.
    harness.inspected(30_000, pod("p", { state: "EXITED" }));
    harness.inspected(31_000, pod("p", { state: "EXITED" }));
    expect(timesOf(harness, "pod.exited")).toEqual([{ observed: 30_000, after: 2_000 }]);
  });
});

describe("a watcher that was resumed", () => {
  const p = running("p");
  const ended = running("p", { codes: { a: 7 } });

  /** After these observations of pods, and a reconnect; `p` has an exit code at second 9. */
  function after(...observations: readonly ((harness: Play) => unknown)[]) {
    const first = play({ describeAfter: 3 });
    for (const observation of observations) observation(first);
    const harness = play();
    for (const event of eventsOf(first.record)) harness.watcher.resume(event);
    harness.watcher.connected();
    return harness;
  }

  const exit = (harness: Play) => timesOf(harness, "app.exited");

  it("has a gap since the last observation that gave facts", () => {
    const harness = after(
      (it) => it.pods(1_000, p),
      (it) => it.pods(2_000, p, pod("q", { state: "PREPARED" })),
      (it) => it.pods(3_000, p, pod("q", { state: "PREPARED" })),
    );
    harness.pods(9_000, p, pod("q", { state: "PREPARED" }));
    expect(gapsOf(harness)).toEqual([{ channel: "pods", reason: "the pods were not observed", after: 2n, until: 9n }]);
  });

  it("knows that the inventory was unchanged at the first observation of all", () => {
    const harness = after((it) => it.pods(1_000, p));
    harness.pods(9_000, ended);
    expect(exit(harness)).toEqual([{ observed: 9_000, after: 1_000 }]);
  });

  it("does not know what the last observation that gave facts held back", () => {
    const harness = after(
      (it) => it.pods(1_000, p),
      (it) => it.pods(2_000, p, pod("q", { state: "PREPARED" })),
      // The end of p is held.
      (it) => it.pods(3_000, pod("p", { state: "EXITED" }), running("q")),
    );
    harness.pods(9_000, pod("p", { state: "EXITED", codes: { a: 7 } }), running("q"));
    expect(exit(harness)).toEqual([{ observed: 9_000, after: 2_000 }]);
  });

  it("does not take an answer about one pod for an observation of the others", () => {
    const [q, qEnded] = [running("q"), running("q", { codes: { a: 8 } })];
    const [r, rEnded] = [running("r"), running("r", { codes: { a: 9 } })];
    const harness = after(
      (it) => it.pods(1_000, p, q, r),
      // No list comes, so that the pods are inspected one by one.
      (it) => it.inspected(31_000, qEnded),
      (it) => it.inspected(32_000, rEnded),
    );
    harness.pods(40_000, ended, qEnded, rEnded);
    expect(gapsOf(harness)).toEqual([{ channel: "pods", reason: "the pods were not observed", after: 1n, until: 40n }]);
    expect(exit(harness)).toEqual([{ observed: 40_000, after: 1_000 }]);
  });

  it("does not know what those missed that were resumed before it, each for one observation only", () => {
    const q = (code: number) => running("q", { codes: { a: code } });
    const lives = [
      (it: Play) => it.pods(1_000, p, q(0)),
      (it: Play) => it.pods(2_000, q(1)),
      (it: Play) => it.pods(3_000, q(2)),
      (it: Play) => it.pods(4_000, q(3)),
    ];
    let events: Event[] = [];
    for (const life of lives) {
      const harness = play();
      for (const event of events) harness.watcher.resume(event);
      harness.watcher.connected();
      harness.images(500, stage1);
      life(harness);
      events = [...events, ...eventsOf(harness.record)];
    }
    const harness = play();
    for (const event of events) harness.watcher.resume(event);
    harness.pods(8_000, q(3));
    expect(harness.pods(9_000, q(3))).toEqual([frame(...removedFacts("p"))]);
    expect(timesOf(harness, "pod.collected")).toEqual([{ observed: 8_000, after: 1_000 }]);
  });

  it("knows of no observation before a later description", () => {
    const first = play({ describeAfter: 3 });
    first.pods(1_000);
    expect(first.pods(2_000, p)).toEqual([frame(...startedFacts("p")), described]);
    const harness = play();
    for (const event of eventsOf(first.record).slice(-1)) harness.watcher.resume(event);
    harness.pods(9_000, ended);
    expect(exit(harness)).toEqual([{ observed: 9_000 }]);
    harness.pods(10_000, running("p", { codes: { a: 8 } }));
    expect(exit(harness).at(-1)).toEqual({ observed: 10_000, after: 9_000 });
  });

  it("takes an observation that comes again for what it was", () => {
    const harness = after(
      (it) => it.pods(1_000, p),
      (it) => it.pods(2_000, p, pod("q", { state: "PREPARED" })),
    );
    expect(harness.pods(2_000, ended, pod("q", { state: "PREPARED" }))).toEqual([
      gap,
      frame(fact("app.exited", "p/a", { exit_code: 7 })),
    ]);
    expect(exit(harness)).toEqual([{ observed: 2_000, after: 1_000 }]);
  });
});

describe("everything gone at once", () => {
  const p = running("p");
  const concluded = frame(
    fact("app.exited", "p/a", { inferred: true }),
    fact("pod.exited", "p", { inferred: true }),
    fact("pod.collected", "p", { inferred: true, phase: "removed" }),
  );
  /** A host with a pod and an image, and a new connection. */
  function reconnected(settings = { extinctionHold: "5000" }): Play {
    const harness = play({ settings });
    harness.pods(1_000, p);
    harness.images(1_000, stage1);
    harness.watcher.connected();
    return harness;
  }

  it("is not believed after a connection, until something known is seen again", () => {
    const harness = reconnected();
    for (const at of [2_000, 3_000, 4_000]) {
      expect([harness.pods(at), harness.images(at)]).toEqual(at === 2_000 ? [[gap], [gap]] : [[], []]);
    }
    expect([harness.pods(5_000, p), harness.images(5_000, stage1)]).toEqual([[], []]);
    expect([harness.pods(20_000), harness.pods(30_000)]).toEqual([[], [frame(...removedFacts("p"))]]);
  });

  it("is forgotten when an image is seen again: then the pods did go", () => {
    const harness = reconnected();
    harness.pods(2_000);
    harness.images(2_000);
    harness.pods(3_000);
    harness.images(3_500, stage1);
    expect(harness.pods(4_000)).toEqual([frame(...removedFacts("p"))]);
    expect(timesOf(harness, "pod.collected")).toEqual([{ observed: 2_000, after: 1_000 }]);
  });

  it("is believed after good observations for long enough: concluded, with a gap before it", () => {
    const harness = reconnected();
    for (const at of [2_000, 4_000, 6_999]) {
      harness.pods(at);
      harness.images(at);
    }
    expect(harness.pods(7_000)).toEqual([gap, concluded]);
    expect(harness.images(7_001)).toEqual([gap, frame(fact("image.removed", "sha512-1", { inferred: true }))]);
    expect(gapsOf(harness).slice(2)).toEqual([
      { channel: "pods", reason: "all pods were gone at once", after: 1n, until: 7n },
      { channel: "images", reason: "all images were gone at once", after: 1n, until: 7n },
    ]);
    expect(timesOf(harness, "pod.collected")).toEqual([{ observed: 2_000, after: 1_000 }]);
    expect([harness.pods(8_000), harness.pods(9_000, running("q"))]).toEqual([[], [frame(...startedFacts("q"))]]);
    expect([harness.pods(10_000), harness.pods(11_000)]).toEqual([[], [frame(...removedFacts("q"))]]);
  });

  it("is held for ten minutes by default", () => {
    const harness = reconnected({} as { extinctionHold: string });
    for (let at = 2_000; at < 602_000; at += 60_000) harness.pods(at);
    expect([harness.pods(601_999), harness.pods(602_000)]).toEqual([[], [gap, concluded]]);
  });

  it("is not believed because the clock was set, or the recorder's machine slept", () => {
    const harness = reconnected({ extinctionHold: "600000" });
    harness.pods(2_000);
    expect([harness.pods(90_000_000), harness.pods(90_001_000), harness.pods(90_002_000, p)]).toEqual([[], [], []]);
  });

  it("counts good observations only", () => {
    const harness = reconnected();
    harness.pods(2_000);
    harness.pods(5_000);
    harness.failed("pods", 6_000);
    expect([harness.pods(20_000), harness.pods(21_999), harness.pods(22_000)]).toEqual([[gap], [], [gap, concluded]]);
  });

  it("is not so where the other channel has something, for which it waits", () => {
    const harness = reconnected();
    expect([harness.pods(2_000), harness.pods(3_000)]).toEqual([[gap], []]);
    expect(harness.images(3_500, stage1, image("sha512-2"))).toEqual([gap, frame(fact("image.imported", "sha512-2"))]);
    expect(harness.pods(4_000)).toEqual([frame(...removedFacts("p"))]);
    expect(timesOf(harness, "pod.collected")).toEqual([{ observed: 2_000, after: 1_000 }]);
  });

  it("is not so where there is something else", () => {
    const harness = reconnected();
    expect([harness.pods(2_000, running("q")), harness.pods(3_000, running("q"))]).toEqual([
      [gap, frame(...startedFacts("q"))],
      [frame(...removedFacts("p"))],
    ]);
  });

  it("is judged by the one channel alone that had something, whatever comes on the other", () => {
    const harness = play({ settings: { extinctionHold: "5000" } });
    harness.pods(1_000, p);
    harness.images(1_000);
    harness.watcher.connected();
    expect([harness.pods(2_000), harness.pods(3_000)]).toEqual([[gap], []]);
    expect([harness.images(3_500, stage1), harness.images(3_600, stage1), harness.pods(4_000)]).toEqual([
      [gap, frame(fact("image.imported", "sha512-1"))],
      [],
      [],
    ]);
    // A new pod in the wrong directory is a fact, and no proof that the others are gone.
    expect([harness.pods(5_000, running("q")), harness.pods(6_000, running("q"))]).toEqual([
      [frame(...startedFacts("q"))],
      [],
    ]);
    expect(harness.pods(7_000, running("q"), p)).toEqual([]);
  });

  it("is not doubted of a text that says that an image is missing", () => {
    const harness = reconnected();
    harness.pods(2_000);
    harness.images(2_000);
    expect(harness.refused("images", 2_001, stage1.id, `no such image with ID "${stage1.id}"`)).toEqual([]);
    expect(harness.images(3_000, stage1)).toEqual([]);
  });

  it("is forgotten when a known pod answers to its name", () => {
    const harness = reconnected();
    harness.pods(2_000);
    harness.inspected(2_001, p);
    harness.images(2_002);
    expect([harness.images(3_000), harness.pods(3_000), harness.pods(4_000)]).toEqual([
      [frame(fact("image.removed", "sha512-1"))],
      [],
      [frame(...removedFacts("p"))],
    ]);
  });

  it("is believed while the connection lives", () => {
    const harness = play();
    harness.pods(1_000, p);
    harness.images(1_000, stage1);
    harness.failed("pods", 1_500);
    expect([harness.pods(2_000), harness.pods(3_000)]).toEqual([[gap], [frame(...removedFacts("p"))]]);
  });

  it("is nothing special at the first connection of all", () => {
    const harness = play();
    harness.watcher.connected();
    harness.pods(1_000, p);
    expect([harness.pods(2_000), harness.pods(3_000)]).toEqual([[], [frame(...removedFacts("p"))]]);
  });

  it("is held from the beginning when something was seen again in between", () => {
    const harness = reconnected();
    harness.pods(2_000);
    harness.pods(6_000);
    harness.pods(7_000, p);
    harness.watcher.connected();
    expect([harness.pods(10_000), harness.pods(14_999), harness.pods(15_000)]).toEqual([[gap], [], [gap, concluded]]);
  });

  it("is held again at the next connection, and counts on", () => {
    const harness = reconnected();
    harness.pods(2_000);
    harness.pods(6_000);
    harness.watcher.connected();
    expect([harness.pods(10_000), harness.pods(11_000)]).toEqual([[gap], [gap, concluded]]);
  });
});
