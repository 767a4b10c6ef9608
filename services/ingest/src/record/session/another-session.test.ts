import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { SourceName } from "@tapedeck/shared/source";
import { expect, it } from "vitest";
import type { Observing } from "../../normalize/inventory/observing.ts";
import { fakeLog } from "../testing/fake-log.ts";
import { plainNormalizer } from "../testing/plain-normalizer.ts";
import { pollingTap } from "../testing/polling-tap.ts";

const source = "default/h1/host/rkt" as SourceName;

/** An observation is "<life>:<word>": each new word is a fact, and another life is another session. */
const lives: Observing = {
  channels: ["pods"],
  mask: (_, bytes) => ({ bytes, redacted: 0 }),
  watch() {
    let life: string | undefined;
    const words = new Set<string>();
    const take = (text: string) => {
      const [of = "", word = ""] = text.split(":");
      life = of;
      const isNew = !words.has(word);
      words.add(word);
      return isNew;
    };
    return {
      resume: ({ summary }) => void take(summary),
      connected() {},
      observe(_, { result }, at) {
        const text = result?.$case === "all" ? Buffer.from(result.value).toString() : "";
        if (life !== undefined && !text.startsWith(life)) return [{ what: "another session" }];
        return take(text) ? [{ what: "frame", facts: [{ kind: "pod.changed", summary: text }], observedAt: at }] : [];
      },
    };
  },
};

const normalizer = { ...plainNormalizer(), channels: [], observing: lives };

it("an observation of another lifetime under the same name ends one session and begins another, which it belongs to", async () => {
  const log = fakeLog(() => ({ lands: "now", answers: true }));
  await using tap = pollingTap(log, { source, normalizer });
  await tap.dial(1_000, "C1", "h1");
  await tap.push(1_001, "C1", { $case: "described", value: { channel: "version", state: Buffer.from("v1") } });
  await tap.observation(1_010, "C1", "pods", "1:a");
  await tap.lost(1_020, "C1");
  await tap.dial(1_030, "C2", "h1");
  await tap.observation(1_040, "C2", "pods", "2:a");
  await tap.observation(1_050, "C2", "pods", "2:b");
  await tap.settled();

  const reported = log.recorded().map(({ event }) => event);
  const [first, second] = reported.filter(({ kind }) => kind === "session.started");
  expect(first?.session).not.toBe(second?.session);
  expect(wordsOf(reported, first)).toEqual(["1:a"]);
  expect(wordsOf(reported, second)).toEqual(["2:a", "2:b"]);
  const [end] = reported.filter(({ kind }) => kind === "session.ended");
  expect(end).toMatchObject({ session: first?.session, not_before: expect.anything() });
  // Both are known by the same name, and what the connection said of the upstream holds for the new one.
  const ofSecond = reported.filter(({ session }) => session === second?.session).map(({ kind }) => kind);
  expect(ofSecond.slice(0, 3)).toEqual(["session.started", "session.identified", "session.described"]);
});

it("the newer one of two of the same name continues, also after a crash", async () => {
  const log = fakeLog(() => ({ lands: "now", answers: true }));
  await using tap = pollingTap(log, { source, normalizer });
  await tap.dial(1_000, "C1", "h1");
  await tap.observation(1_010, "C1", "pods", "1:a");
  await tap.lost(1_020, "C1");
  await tap.dial(1_030, "C2", "h1");
  await tap.observation(1_040, "C2", "pods", "2:a");
  await tap.settled();
  // The tap pushes again the observation that showed it.
  await tap.crash(7);
  await tap.lost(1_060, "C2");
  await tap.dial(1_070, "C3", "h1");
  await tap.observation(1_080, "C3", "pods", "2:c");
  await tap.settled();

  const reported = log.recorded().map(({ event }) => event);
  const sessions = reported.filter(({ kind }) => kind === "session.started");
  expect(sessions).toHaveLength(2);
  expect(wordsOf(reported, sessions[1])).toEqual(["2:a", "2:c"]);
});

function wordsOf(reported: readonly Event[], of: Event | undefined): string[] {
  return reported.flatMap(({ session, channel, summary }) =>
    session === of?.session && channel === "pods" ? [summary] : [],
  );
}

it("a watcher learns whether its recorder was replaced, while the tap went on polling, or nobody polled", async () => {
  const reported: string[] = [];
  const listening: Observing = {
    ...lives,
    watch(options) {
      const watcher = lives.watch(options);
      const restarted = () => void reported.push("restarted");
      return { ...watcher, connected: () => void reported.push("connected"), restarted };
    },
  };
  const log = fakeLog(() => ({ lands: "now", answers: true }));
  await using tap = pollingTap(log, { source, normalizer: { ...normalizer, observing: listening } });
  await tap.dial(1_000, "C1", "h1");
  await tap.observation(1_010, "C1", "pods", "1:a");
  await tap.settled();
  await tap.crash();
  await tap.observation(1_020, "C1", "pods", "1:b");
  await tap.lost(1_030, "C1");
  await tap.dial(1_040, "C2", "h1");
  await tap.observation(1_050, "C2", "pods", "1:c");
  await tap.settled();
  expect(reported).toEqual(["connected", "restarted", "connected"]);
});
