import type { Operation } from "@tapedeck/client";
import { withCauses } from "@tapedeck/client/lanes/causes";
import { foldNow, type Now } from "@tapedeck/client/lanes/now";
import { event, failed, inLoop } from "@tapedeck/client/lanes/testing/events";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Notice } from "./desktop.ts";
import { LoopNotices } from "./loop-notices.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const bob = "acme/bob/shop/skaffold";

/** Notices about sources whose loops the test plays; `causes: false`: nobody finds out why. */
function harness({ isOwn }: { readonly isOwn?: (session: string) => boolean } = {}) {
  const shown: Notice[] = [];
  let now: Now = new Map();
  const notices = new LoopNotices({ show: (notice) => shown.push(notice), ...(isOwn && { isOwn }) });
  const takeLoop = (at: number, verb: "succeeded" | "failed", source = bob, session = "01SESSION") => {
    const loop = at + 1;
    const fields = { source, session };
    const error = verb === "failed" ? failed("exit status 1") : {};
    now = foldNow(now, inLoop(at, "loop.started", loop, fields));
    now = foldNow(now, inLoop(at + 0.1, "build.started", loop, { ...fields, subject: "web" }));
    const end = inLoop(at + 1, `build.${verb}`, loop, { ...fields, ...error, subject: "web" });
    now = foldNow(now, end);
    now = foldNow(now, inLoop(at + 2, `loop.${verb}`, loop, { ...fields, ...error }));
    return end.position;
  };
  return {
    shown,
    notices,
    before: (at: number, verb: "succeeded" | "failed", session = "01SESSION") => void takeLoop(at, verb, bob, session),
    loop: (...loop: Parameters<typeof takeLoop>) => {
      const endPosition = takeLoop(...loop);
      notices.update(now);
      return endPosition;
    },
    /** The loop that began at `at` ends once more: Skaffold has tried its sync again. */
    endsAgain: (at: number, seconds: number, verb: "succeeded" | "failed") => {
      const error = verb === "failed" ? failed("exit status 1") : {};
      now = foldNow(now, inLoop(at + seconds, `loop.${verb}`, at + 1, { source: bob, ...error }));
      notices.update(now);
    },
    cause: (endPosition: string, text: string, source = bob) => {
      const cause = { text, reason: "unknown", file: "main.go", line: 7 };
      now = withCauses(now, [{ kind: "build", subject: "web", endPosition, cause, source } as unknown as Operation]);
      notices.update(now);
    },
    start: () => notices.update(now),
    passes: (ms: number) => vi.advanceTimersByTime(ms),
  };
}

const failure = { title: "bob/shop: build web failed", text: "undefined: total · main.go:7" };

it("a failure is shown with its cause as soon as this is known, and once", () => {
  const { shown, start, loop, cause, passes } = harness();
  start();
  const position = loop(0, "failed");
  passes(500);
  expect(shown).toEqual([]);
  cause(position, "undefined: total");
  passes(0);
  expect(shown).toEqual([failure]);
  passes(600_000);
  expect(shown).toHaveLength(1);
});

it("a failure without a cause is shown after three seconds", () => {
  const { shown, start, loop, passes } = harness();
  start();
  loop(0, "failed");
  passes(2_999);
  expect(shown).toEqual([]);
  passes(1);
  expect(shown).toEqual([{ title: "bob/shop: build web failed", text: "failed" }]);
});

it("a source that is good again is shown with how long it was not, and good loops are not shown", () => {
  const { shown, start, loop, passes } = harness();
  start();
  loop(0, "succeeded");
  loop(10, "failed");
  passes(20_000);
  loop(30, "failed");
  passes(20_000);
  loop(70, "succeeded");
  passes(0);
  loop(80, "succeeded");
  passes(60_000);
  expect(shown.slice(1)).toEqual([
    { title: "bob/shop is good again", text: "after 1 min · 2 failures · the last loop took 2.0 s" },
  ]);
});

it("failures of a source that stays broken are shown once a minute at most", () => {
  const { shown, start, loop, passes } = harness();
  start();
  for (let at = 0; at < 180; at += 5) {
    loop(at, "failed");
    passes(5_000);
  }
  expect(shown.map(({ title }) => title)).toEqual(Array(3).fill("bob/shop: build web failed"));
});

it("a source that fails and is good again in turns gives one notice in ten seconds at most", () => {
  const { shown, start, loop, passes } = harness();
  start();
  for (let at = 0; at < 60; at += 4) {
    loop(at, at % 8 === 0 ? "failed" : "succeeded");
    passes(4_000);
  }
  expect(shown.length).toBeGreaterThan(2);
  expect(shown.length).toBeLessThanOrEqual(6);
});

it("a loop that has failed and then worked before this was shown is not shown", () => {
  const { shown, start, loop, endsAgain, passes, notices } = harness();
  start();
  loop(0, "failed");
  passes(2_000);
  endsAgain(0, 4, "succeeded");
  passes(60_000);
  expect(shown).toEqual([]);
  expect(notices.isRed(bob)).toBe(false);
});

it("a loop that works at its second try is shown as good again, and as one failure", () => {
  const { shown, start, loop, endsAgain, passes, notices } = harness();
  start();
  loop(0, "failed");
  passes(20_000);
  endsAgain(0, 22, "failed");
  passes(20_000);
  endsAgain(0, 42, "succeeded");
  passes(60_000);
  expect(shown.slice(1)).toEqual([{ title: "bob/shop is good again", text: "after 40 s · the last loop took 42 s" }]);
  expect(notices.isRed(bob)).toBe(false);
});

it("a loop that fails after it has worked is shown", () => {
  const { shown, start, loop, endsAgain, passes } = harness();
  start();
  loop(0, "succeeded");
  passes(20_000);
  endsAgain(0, 22, "failed");
  passes(60_000);
  expect(shown).toHaveLength(1);
});

it("a clock that is set back delays no notice", () => {
  const { shown, start, loop, passes } = harness();
  start();
  loop(0, "failed");
  passes(20_000);
  vi.setSystemTime(Date.now() - 3_600_000);
  loop(30, "succeeded");
  passes(0);
  expect(shown.slice(1)).toMatchObject([{ title: "bob/shop is good again" }]);
});

it("many sources that fail at once are shown in one notice", () => {
  const { shown, start, loop, passes } = harness();
  start();
  for (let one = 0; one < 30; one++) loop(0, "failed", `acme/dev${one}/shop/skaffold`);
  passes(60_000);
  const lines = [0, 1, 2, 3, 4].map((one) => `dev${one}/shop: build web failed`);
  expect(shown).toEqual([{ title: "30 sources failed", text: [...lines, "and 25 more"].join("\n") }]);
});

it("a notice about several sources says why each failed, and after how long one is good again", () => {
  const { shown, start, loop, cause, passes } = harness();
  const [alice, chris] = ["acme/alice/shop/skaffold", "acme/chris/shop/skaffold"];
  start();
  cause(loop(0, "failed"), "undefined: total");
  passes(1_000);
  cause(loop(10, "failed", alice), "undefined: cents", alice);
  loop(10, "failed", chris);
  loop(20, "succeeded");
  passes(60_000);
  expect(shown.slice(1)).toEqual([
    {
      title: "2 sources failed, 1 is good again",
      text: [
        ...["alice/shop: build web failed: undefined: cents", "chris/shop: build web failed"],
        "bob/shop is good again after 20 s",
      ].join("\n"),
    },
  ]);
});

it("sources that fail one after the other do not delay the notice about the first one", () => {
  const { shown, start, loop, passes } = harness();
  start();
  for (let one = 0; one < 5; one++) {
    loop(one, "failed", `acme/dev${one}/shop/skaffold`);
    passes(1_000);
  }
  expect(shown).toMatchObject([{ title: "3 sources failed" }]);
});

it("a failure from before is not shown, but that the source is good again is", () => {
  const { shown, start, before, loop, passes } = harness();
  before(0, "failed");
  start();
  passes(60_000);
  expect(shown).toEqual([]);
  loop(60, "succeeded");
  passes(0);
  expect(shown).toMatchObject([{ title: "bob/shop is good again" }]);
});

it("loops of other sessions are not shown where only some are meant, and count as what was before", () => {
  const { shown, start, before, loop, passes } = harness({ isOwn: (session) => session === "01OWN" });
  before(0, "failed", "01OTHER");
  start();
  loop(10, "failed", bob, "01OTHER");
  passes(60_000);
  expect(shown).toEqual([]);
  loop(20, "succeeded", bob, "01OWN");
  passes(0);
  expect(shown).toMatchObject([{ title: "bob/shop is good again" }]);
});

it("steps outside of loops are good only when their process has ended", () => {
  const shown: Notice[] = [];
  using notices = new LoopNotices({ show: (notice) => shown.push(notice) });
  const outside = (at: number, kind: string, fields = {}) =>
    inLoop(at, kind, 0, { subject: "web", session: "01NEXT", ...fields });
  let now = foldNow(new Map(), event(0, "session.started"));
  now = foldNow(now, inLoop(1, "build.started", 0, { subject: "web" }));
  now = foldNow(now, inLoop(2, "build.failed", 0, { subject: "web", ...failed("exit status 1") }));
  notices.update(now);
  for (const one of [
    event(10, "session.started", { session: "01NEXT" }),
    outside(11, "build.started"),
    outside(12, "build.succeeded"),
  ]) {
    now = foldNow(now, one);
    notices.update(now);
    vi.advanceTimersByTime(60_000);
  }
  expect(shown).toEqual([]);
  notices.update(foldNow(now, event(13, "session.ended", { session: "01NEXT" })));
  vi.advanceTimersByTime(0);
  expect(shown).toMatchObject([{ title: "bob/shop is good again" }]);
});
