import type { JsonObject } from "@bufbuild/protobuf";
import { Event, GapDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { describe, expect, it } from "vitest";
import { evolve } from "./evolve.ts";
import { initialState, type SkaffoldState } from "./state.ts";
import { answers, comparable } from "./testing/answers.ts";
import {
  build,
  buildV2,
  deploy,
  describedBy,
  empty,
  firstLoop,
  firstLoopV2,
  fold,
  loop,
  taskV2,
  v1After,
  v2After,
} from "./testing/builders.ts";
import { inOrder } from "./testing/in-order.ts";
import { type Api, recordedSession, recordingNames, stateTypes } from "./testing/recorded-session.ts";

const gap = (kind: "session.gap" | "session.gap_filled", channel: string, open = true): Event => ({
  ...Event.create({ channel: "tapedeck", kind }),
  detail: { $case: "gap", value: GapDetail.fromPartial({ channel, open }) },
});

function adoptedAs(states: { readonly v1?: JsonObject; readonly v2?: JsonObject }): Event {
  const described = describedBy(states);
  if (described.detail?.$case !== "session_detail") throw new Error("no description");
  const { value } = described.detail;
  return { ...described, detail: { $case: "session_detail", value: { ...value, adopted: true } } };
}

describe("a state that was adopted after a call past Tapedeck", () => {
  const reset: JsonObject = {
    buildState: { artifacts: { web: "Not Started", api: "Not Started" }, autoTrigger: true },
    testState: { status: "Not Started" },
    deployState: { status: "Not Started", autoTrigger: true },
    statusCheckState: { status: "Not Started" },
    fileSyncState: { status: "Not Started", autoTrigger: true },
  };

  it("is the state, and not before", () => {
    expect(v1After(...firstLoop)).toMatchObject({ buildState: { artifacts: { web: "Complete" } } });
    expect(v1After(...firstLoop, adoptedAs({ v1: reset }))).toMatchObject({
      buildState: { artifacts: { web: "Not Started", api: "Not Started" } },
      deployState: { status: "Not Started", statusCode: "OK" },
      forwardedPorts: empty,
    });
  });

  it("goes on with the events that follow", () => {
    const next = [loop("In Progress"), build("web", "Complete"), deploy("Complete"), loop("Succeeded")];
    expect(v1After(...firstLoop, adoptedAs({ v1: reset }), ...next)).toMatchObject({
      buildState: { artifacts: { web: "Complete", api: "Not Started" } },
      deployState: { status: "Complete", statusCode: "DEPLOY_SUCCESS" },
    });
  });

  it("is cleared by the next loop like any other", () => {
    const failed = { ...reset, testState: { status: "Failed", statusCode: "TEST_UNKNOWN" } };
    const after = [...firstLoop, adoptedAs({ v1: failed })];
    expect(v1After(...after)).toMatchObject({ testState: { status: "Failed", statusCode: "TEST_UNKNOWN" } });
    expect(v1After(...after, loop("In Progress"), build("web", "In Progress"))).toMatchObject({
      testState: { status: "Not Started", statusCode: "OK" },
    });
  });

  it("leaves the other API alone", () => {
    const both = [...firstLoop, ...firstLoopV2, buildV2("web", "Succeeded")];
    expect(v2After(...both, adoptedAs({ v1: reset }))).toEqual(v2After(...both));
  });

  it("is ignored if it can't be decoded or there is no runner", () => {
    const events = [...firstLoop, adoptedAs({ v1: {}, v2: {} })];
    expect(v1After(...events)).toEqual(v1After(...firstLoop));
  });
});

describe("an API whose stream broke", () => {
  const before = [...firstLoopV2, buildV2("web", "InProgress")];
  const missed = [buildV2("web", "Succeeded"), taskV2("DevLoop"), buildV2("api", "Failed")];
  const broke = gap("session.gap", "v2");
  const answer = adoptedAs({ v2: { buildState: { artifacts: { web: "NotStarted", api: "Failed" } } } });

  it("is Skaffold's answer until all missed events have come", () => {
    expect(v2After(...before, broke)).toEqual(v2After(...before));
    const artifacts = { web: "NotStarted", api: "Failed" };
    expect(v2After(...before, broke, answer)).toMatchObject({ buildState: { artifacts } });
    // The events of the file come one after the other: none of them is the state of now.
    expect(v2After(...before, broke, answer, ...missed.slice(0, 1))).toMatchObject({ buildState: { artifacts } });
    const filled = [...before, broke, answer, ...missed, gap("session.gap_filled", "v2")];
    expect(v2After(...filled)).toMatchObject({ buildState: { artifacts } });
    // But for what only an answer shows.
    const { buildState } = v2After(...before, ...missed) as { buildState: JsonObject };
    expect(v2After(...filled)).toMatchObject({ buildState: { artifacts: buildState.artifacts ?? null } });
    expect(fold(...filled).broken).toEqual({});
  });

  it("affects one API alone: v1's events still change v1", () => {
    expect(v1After(...firstLoop, broke, answer)).toEqual(v1After(...firstLoop));
  });

  it("is not another gap", () => {
    expect(fold(gap("session.gap", "v2", false), gap("session.gap", "logs"), gap("session.gap", ""))).toBe(
      initialState,
    );
    expect(fold(gap("session.gap_filled", "v2"))).toBe(initialState);
  });
});

describe.each(recordingNames().map((name) => [name, recordedSession(name)] as const))("%s", (_name, session) => {
  const log = inOrder(session);
  const isWhole = !session.name.startsWith("17");

  it("is Skaffold's answer at whatever position it is adopted, and later answers follow from it", () => {
    let adoptions = 0;
    for (const [first, answer] of session.states.entries()) {
      // Its flag lasts until the next loop, and the next description says so.
      if (answer.json.buildState === null || answer.file === "v2-state-08-after-v2-auto-build-on.json") continue;
      const adoption = adoptedAs({ [answer.api]: answer.json });
      let state: SkaffoldState = initialState;
      let isAdopted = false;
      const seen = { v1: 0, v2: 0 };
      for (const entry of log) {
        if (!isAdopted && isTold(answer, seen) && entry.at > answer.at) {
          state = evolve(state, adoption);
          expect(answers(state)[answer.api]).toEqual(comparable(answer.json));
          isAdopted = true;
          adoptions++;
        }
        state = evolve(state, entry.event);
        if (entry.api !== "tapedeck") seen[entry.api]++;
        for (const later of isAdopted ? session.states.slice(first + 1) : []) {
          if (later.api !== answer.api || later.json.buildState === null) continue;
          const isThere = entry.api === later.api && seen[later.api] === later.seen && later.seen > answer.seen;
          if (isThere && isRight(later)) expect(answers(state)[later.api]).toEqual(comparable(later.json));
        }
      }
    }
    expect(adoptions).toBeLessThanOrEqual(session.states.length);
  });

  function isTold({ api, seen: reported }: { readonly api: Api; readonly seen: number }, seen: Record<Api, number>) {
    return seen[api] === reported;
  }

  /** Without an adoption the fold gives this answer too, at this very place. */
  function isRight(answer: (typeof session.states)[number]): boolean {
    if (!isWhole) return false;
    const until = log.findIndex((entry) => entry.api === answer.api && entry.index === answer.seen - 1);
    const state = log.slice(0, until + 1).reduce((before, { event }) => evolve(before, event), initialState);
    return JSON.stringify(answers(state)[answer.api]) === JSON.stringify(comparable(answer.json));
  }
});

it("serves the adopted answers of a process whose v2 stream broke", () => {
  const session = recordedSession("17-invalid-utf8-in-build-output");
  const events = inOrder(session).map(({ event }) => event);
  const state = [...events, gap("session.gap", "v2")].reduce(evolve, initialState);
  const answersOfV2 = session.states.filter(({ api, json }) => api === "v2" && json.buildState !== null);
  expect(answersOfV2.length).toBeGreaterThan(1);
  for (const { json } of answersOfV2) {
    const bytes = Buffer.from(fromGatewayJson(stateTypes.v2, json));
    expect(bytes.length).toBeGreaterThan(0);
    expect(answers(evolve(state, adoptedAs({ v2: json }))).v2).toEqual(comparable(json));
  }
});
