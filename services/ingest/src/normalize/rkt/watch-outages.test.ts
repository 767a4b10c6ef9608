import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { describe, expect, it } from "vitest";
import { eventsOf, image, type Play, type PodFields, play, pod, timesOf } from "./testing/watch-play.ts";

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
  it("is a gap, told once for its channel before what the first good look tells", () => {
    const desk = play();
    desk.pods(1_000, running("p"));
    desk.images(1_100, stage1);
    expect([desk.failed("pods", 2_000, "failed to get pods"), desk.failed("pods", 3_000, "other")]).toEqual(["", ""]);
    expect(desk.pods(4_000, running("p", { codes: { a: 7 } }))).toBe("gap | x:a=7");
    expect(desk.images(4_100, stage1)).toBe("");
    expect(gapsOf(desk)).toEqual([
      { channel: "pods", reason: "the pods could not be listed: failed to get pods", after: 1n, until: 4n },
    ]);
    expect(timesOf(desk, "app.exited")).toEqual([{ observed: 4_000, after: 1_000 }]);
    expect(desk.pods(5_000, running("p", { codes: { a: 7 } }))).toBe("");
  });

  it("is what there was before a connection, on both channels, but not before the first look of all", () => {
    const desk = play();
    desk.failed("pods", 500);
    desk.watcher.connected();
    expect([desk.pods(1_000, running("p")), desk.pods(1_001, running("p"))]).toEqual(["described", ""]);
    desk.watcher.connected();
    expect(desk.images(1_100, stage1)).toBe("described");
    desk.watcher.connected();
    expect([desk.pods(2_000, running("p")), desk.images(2_100, stage1)]).toEqual(["gap", "gap"]);
  });

  it("may have no code but a text, or no text but a code", () => {
    const desk = play();
    desk.pods(1_000);
    desk.look("pods", 2_000, { $case: "failed", value: { code: 4, message: "" } });
    desk.pods(3_000);
    expect(gapsOf(desk)[0]?.reason).toBe("the pods could not be listed: code 4");
  });

  it("makes a look that says the same as one of another connection say nothing", () => {
    const desk = play();
    expect(desk.same("pods", 500)).toBe("");
    desk.pods(1_000, running("p"));
    desk.pods(2_000);
    desk.watcher.connected();
    expect([desk.same("pods", 3_000), desk.same("pods", 4_000)]).toEqual(["", ""]);
    expect(desk.pods(5_000, running("p"))).toBe("gap");
    expect(gapsOf(desk)).toEqual([{ channel: "pods", reason: "nobody looked at the pods", after: 2n, until: 5n }]);
  });

  it("leaves what a look said the same as, where the connection lives on", () => {
    const desk = play();
    desk.pods(1_000, running("p"));
    desk.failed("pods", 2_000);
    expect(desk.same("pods", 3_000)).toBe("gap");
  });
});

describe("a watcher that was resumed", () => {
  const p = running("p");
  const ended = running("p", { codes: { a: 7 } });

  /** After these looks at pods, and a reconnect; `p` has an exit code at second 9. */
  function after(...looks: readonly ((desk: Play) => unknown)[]) {
    const first = play({ describeAfter: 3 });
    for (const look of looks) look(first);
    const desk = play();
    for (const event of eventsOf(first.record)) desk.watcher.resume(event);
    desk.watcher.connected();
    return desk;
  }

  const exit = (desk: Play) => timesOf(desk, "app.exited");

  it("has a gap since the last look that told something", () => {
    const desk = after(
      (it) => it.pods(1_000, p),
      (it) => it.pods(2_000, p, pod("q", { state: "PREPARED" })),
      (it) => it.pods(3_000, p, pod("q", { state: "PREPARED" })),
    );
    desk.pods(9_000, p, pod("q", { state: "PREPARED" }));
    expect(gapsOf(desk)).toEqual([{ channel: "pods", reason: "nobody looked at the pods", after: 2n, until: 9n }]);
  });

  it("knows that things were as they were at the first look of all", () => {
    const desk = after((it) => it.pods(1_000, p));
    desk.pods(9_000, ended);
    expect(exit(desk)).toEqual([{ observed: 9_000, after: 1_000 }]);
  });

  it("does not know what the last look that told something held back", () => {
    const desk = after(
      (it) => it.pods(1_000, p),
      (it) => it.pods(2_000, p, pod("q", { state: "PREPARED" })),
      // The end of p is held.
      (it) => it.pods(3_000, pod("p", { state: "EXITED" }), running("q")),
    );
    desk.pods(9_000, pod("p", { state: "EXITED", codes: { a: 7 } }), running("q"));
    expect(exit(desk)).toEqual([{ observed: 9_000, after: 2_000 }]);
  });

  it("does not know what those missed that were resumed before it, each for one look only", () => {
    const q = (code: number) => running("q", { codes: { a: code } });
    const lives = [
      (it: Play) => it.pods(1_000, p, q(0)),
      (it: Play) => it.pods(2_000, q(1)),
      (it: Play) => it.pods(3_000, q(2)),
      (it: Play) => it.pods(4_000, q(3)),
    ];
    let events: Event[] = [];
    for (const life of lives) {
      const desk = play();
      for (const event of events) desk.watcher.resume(event);
      desk.watcher.connected();
      desk.images(500, stage1);
      life(desk);
      events = [...events, ...eventsOf(desk.record)];
    }
    const desk = play();
    for (const event of events) desk.watcher.resume(event);
    desk.pods(8_000, q(3));
    expect(desk.pods(9_000, q(3))).toBe("(x:a=?) (X) removed");
    expect(timesOf(desk, "pod.collected")).toEqual([{ observed: 8_000, after: 1_000 }]);
  });

  it("knows of no look before a later description", () => {
    const first = play({ describeAfter: 3 });
    first.pods(1_000);
    expect(first.pods(2_000, p)).toBe("(P) S s:a | described");
    const desk = play();
    for (const event of eventsOf(first.record).slice(-1)) desk.watcher.resume(event);
    desk.pods(9_000, ended);
    expect(exit(desk)).toEqual([{ observed: 9_000 }]);
    desk.pods(10_000, running("p", { codes: { a: 8 } }));
    expect(exit(desk).at(-1)).toEqual({ observed: 10_000, after: 9_000 });
  });

  it("takes a look that comes again for what it was", () => {
    const desk = after(
      (it) => it.pods(1_000, p),
      (it) => it.pods(2_000, p, pod("q", { state: "PREPARED" })),
    );
    expect(desk.pods(2_000, ended, pod("q", { state: "PREPARED" }))).toBe("gap | x:a=7");
    expect(exit(desk)).toEqual([{ observed: 2_000, after: 1_000 }]);
  });
});

describe("everything gone at once", () => {
  const p = running("p");
  /** A host with a pod and an image, and a new connection. */
  function reconnected(settings = { extinctionHold: "5000" }): Play {
    const desk = play({ settings });
    desk.pods(1_000, p);
    desk.images(1_000, stage1);
    desk.watcher.connected();
    return desk;
  }

  it("is not believed after a connection, until something known is seen again", () => {
    const desk = reconnected();
    for (const at of [2_000, 3_000, 4_000]) {
      expect([desk.pods(at), desk.images(at)]).toEqual(at === 2_000 ? ["gap", "gap"] : ["", ""]);
    }
    expect([desk.pods(5_000, p), desk.images(5_000, stage1)]).toEqual(["", ""]);
    expect([desk.pods(20_000), desk.pods(30_000)]).toEqual(["", "(x:a=?) (X) removed"]);
  });

  it("is forgotten when an image is seen again: then the pods did go", () => {
    const desk = reconnected();
    desk.pods(2_000);
    desk.images(2_000);
    desk.pods(3_000);
    desk.images(3_500, stage1);
    expect(desk.pods(4_000)).toBe("(x:a=?) (X) removed");
    expect(timesOf(desk, "pod.collected")).toEqual([{ observed: 2_000, after: 1_000 }]);
  });

  it("is believed after good looks for long enough: concluded, with a gap before it", () => {
    const desk = reconnected();
    for (const at of [2_000, 4_000, 6_999]) {
      desk.pods(at);
      desk.images(at);
    }
    expect(desk.pods(7_000)).toBe("gap | (x:a=?) (X) (removed)");
    expect(desk.images(7_001)).toBe("gap | (removed:sha512-1)");
    expect(gapsOf(desk).slice(2)).toEqual([
      { channel: "pods", reason: "all pods were gone at once", after: 1n, until: 7n },
      { channel: "images", reason: "all images were gone at once", after: 1n, until: 7n },
    ]);
    expect(timesOf(desk, "pod.collected")).toEqual([{ observed: 2_000, after: 1_000 }]);
    expect([desk.pods(8_000), desk.pods(9_000, running("q"))]).toEqual(["", "(P) S s:a"]);
    expect([desk.pods(10_000), desk.pods(11_000)]).toEqual(["", "(x:a=?) (X) removed"]);
  });

  it("is held for ten minutes by default", () => {
    const desk = reconnected({} as { extinctionHold: string });
    for (let at = 2_000; at < 602_000; at += 60_000) desk.pods(at);
    expect([desk.pods(601_999), desk.pods(602_000)]).toEqual(["", "gap | (x:a=?) (X) (removed)"]);
  });

  it("is not believed because the clock was set, or the recorder's machine slept", () => {
    const desk = reconnected({ extinctionHold: "600000" });
    desk.pods(2_000);
    expect([desk.pods(90_000_000), desk.pods(90_001_000), desk.pods(90_002_000, p)]).toEqual(["", "", ""]);
  });

  it("counts good looks only", () => {
    const desk = reconnected();
    desk.pods(2_000);
    desk.pods(5_000);
    desk.failed("pods", 6_000);
    expect([desk.pods(20_000), desk.pods(21_999), desk.pods(22_000)]).toEqual([
      "gap",
      "",
      "gap | (x:a=?) (X) (removed)",
    ]);
  });

  it("is not so where the other channel has something, for which it waits", () => {
    const desk = reconnected();
    expect([desk.pods(2_000), desk.pods(3_000)]).toEqual(["gap", ""]);
    expect(desk.images(3_500, stage1, image("sha512-2"))).toBe("gap | imported:sha512-2");
    expect(desk.pods(4_000)).toBe("(x:a=?) (X) removed");
    expect(timesOf(desk, "pod.collected")).toEqual([{ observed: 2_000, after: 1_000 }]);
  });

  it("is not so where there is something else", () => {
    const desk = reconnected();
    expect([desk.pods(2_000, running("q")), desk.pods(3_000, running("q"))]).toEqual([
      "gap | (P) S s:a",
      "(x:a=?) (X) removed",
    ]);
  });

  it("is judged by the one channel alone that had something, whatever comes on the other", () => {
    const desk = play({ settings: { extinctionHold: "5000" } });
    desk.pods(1_000, p);
    desk.images(1_000);
    desk.watcher.connected();
    expect([desk.pods(2_000), desk.pods(3_000)]).toEqual(["gap", ""]);
    expect([desk.images(3_500, stage1), desk.images(3_600, stage1), desk.pods(4_000)]).toEqual([
      "gap | imported:sha512-1",
      "",
      "",
    ]);
    // A new pod in the wrong directory is a fact, and no proof that the others are gone.
    expect([desk.pods(5_000, running("q")), desk.pods(6_000, running("q"))]).toEqual(["(P) S s:a", ""]);
    expect(desk.pods(7_000, running("q"), p)).toBe("");
  });

  it("is not doubted of a text that says that an image is missing", () => {
    const desk = reconnected();
    desk.pods(2_000);
    desk.images(2_000);
    expect(desk.refused("images", 2_001, stage1.id, `no such image with ID "${stage1.id}"`)).toBe("");
    expect(desk.images(3_000, stage1)).toBe("");
  });

  it("is forgotten when a known pod answers to its name", () => {
    const desk = reconnected();
    desk.pods(2_000);
    desk.inspected(2_001, p);
    desk.images(2_002);
    expect([desk.images(3_000), desk.pods(3_000), desk.pods(4_000)]).toEqual([
      "removed:sha512-1",
      "",
      "(x:a=?) (X) removed",
    ]);
  });

  it("is believed while the connection lives", () => {
    const desk = play();
    desk.pods(1_000, p);
    desk.images(1_000, stage1);
    desk.failed("pods", 1_500);
    expect([desk.pods(2_000), desk.pods(3_000)]).toEqual(["gap", "(x:a=?) (X) removed"]);
  });

  it("is nothing special at the first connection of all", () => {
    const desk = play();
    desk.watcher.connected();
    desk.pods(1_000, p);
    expect([desk.pods(2_000), desk.pods(3_000)]).toEqual(["", "(x:a=?) (X) removed"]);
  });

  it("is held from the beginning when something was seen again in between", () => {
    const desk = reconnected();
    desk.pods(2_000);
    desk.pods(6_000);
    desk.pods(7_000, p);
    desk.watcher.connected();
    expect([desk.pods(10_000), desk.pods(14_999), desk.pods(15_000)]).toEqual([
      "gap",
      "",
      "gap | (x:a=?) (X) (removed)",
    ]);
  });

  it("is held again at the next connection, and counts on", () => {
    const desk = reconnected();
    desk.pods(2_000);
    desk.pods(6_000);
    desk.watcher.connected();
    expect([desk.pods(10_000), desk.pods(11_000)]).toEqual(["gap", "gap | (x:a=?) (X) (removed)"]);
  });
});
