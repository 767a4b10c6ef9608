import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { type Event, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { scenario } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { expect, it } from "vitest";
import { startSeededStack } from "../stack/seeded-stack.ts";
import { startStack } from "../stack/stack.ts";
import { type McpClient, mcpClient } from "./mcp-client.ts";

// Each answer ends with the call that gives it again. All calls are made after some of the events, and again when more have come.

type Call = readonly [tool: string, args: Record<string, unknown>];

/** Every tool whose answers are of a position, about each source that is known by now. */
function callsAbout(sources: readonly string[], loop: string): readonly Call[] {
  const ofSource = (source: string): readonly Call[] => [
    ["why_failed", { source }],
    ["compare", { left: source }],
    ["get_state", { source }],
    ["read_output", { source }],
    ["read_output", { source, tokens: 1_000 }],
    ["search_events", { source, limit: 5 }],
    ["search_events", { source, after: "2020-01-01T00:00:00Z", limit: 200 }],
    ["wait_for_loop", { source, after: "start", seconds: 0 }],
    ["wait_for_loop", { source, seconds: 0 }],
  ];
  return [
    ["list_sources", {}],
    ["why_failed", {}],
    ["why_failed", { loop }],
    ["read_output", { loop }],
    ["wait_for_loop", { after: "start", seconds: 0 }],
    ...sources.flatMap(ofSource),
  ];
}

type Answer = { readonly call: Call; readonly text: string };

async function answersOf(mcp: McpClient, calls: readonly Call[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const call of calls) {
    const { text, isError } = await mcp.call(...call);
    // Nothing may have begun, or failed, yet.
    if (isError) expect(text).toMatch(/^(before_first|not_found|unknown_source): /);
    else answers.push({ call, text });
  }
  return answers;
}

/** How the same answer is got, as a reader takes it from there. */
function againIn(text: string): Call | undefined {
  const [, tool = "", args = ""] = /^Ask again: (\w+) (\{.*\})(?: \(.*\))?$/m.exec(text) ?? [];
  return tool === "" ? undefined : [tool, JSON.parse(args)];
}

/** Asks each again: the answer is the same, which it says of itself. Resolves with how many could be. */
async function askAgain(mcp: McpClient, answers: readonly Answer[]): Promise<number> {
  let count = 0;
  const others: object[] = [];
  for (const { call, text } of answers) {
    const again = againIn(text);
    if (again === undefined) {
      expect([call, text]).toEqual([call, expect.stringContaining("is always of now")]);
      continue;
    }
    const answer = await mcp.ask(...again);
    if (answer !== text) others.push({ call, again, text, answer });
    count++;
  }
  expect(others).toEqual([]);
  return count;
}

const nameOf = (developer: string, upstream: "skaffold" | "vagrant" | "rkt") =>
  sourceName({ workspace: "acme", developer, project: "shop", upstream });

/** Chris's sync is retried, Dana's recorder is lost during a command, and a host's during the run of a pod. */
function story(): readonly (readonly Event[])[] {
  const [chris, dana, host] = [
    scenario(nameOf("chris", "skaffold")),
    scenario(nameOf("dana", "vagrant")),
    scenario(nameOf("host", "rkt")),
  ];
  const parts: (readonly Event[])[] = [];
  const taken = new Map([chris, dana, host].map((script) => [script, 0]));
  const cut = () => {
    const added = [chris, dana, host].flatMap((script) => {
      const from = taken.get(script) ?? 0;
      taken.set(script, script.events.length);
      return script.events.slice(from);
    });
    parts.push(added);
  };
  const session = chris.session("01C1");
  const command = { session: "01D1", channel: "jobs", subject: "01J1" };
  const up = { kind: "command", subject: "up", instance: "01J1" };
  const pod = { session: "01H1", channel: "pods", operation: { kind: "pod", subject: "p1" } };
  session.started({ branch: "main" });
  session.configured();
  session.loopStarted();
  session.build("web", "started");
  session.build("web", "succeeded");
  session.loopEnded("succeeded");
  dana.add({ session: "01D1", kind: "session.started" });
  dana.add({ ...command, kind: "command.started", operation: up });
  host.add({ session: "01H1", kind: "session.started" });
  host.add({ ...pod, kind: "pod.started" });
  session.loopStarted();
  for (const verb of ["failed", "failed", "failed", "succeeded"] as const) {
    session.phase("sync", "started");
    session.text(`copying to web: ${verb}\n`);
    session.phase("sync", verb);
    session.loopEnded(verb);
    cut();
  }
  dana.add({ session: "01D1", kind: "session.lost" });
  host.add({ session: "01H1", kind: "session.lost" });
  cut();
  dana.add({ session: "01D1", kind: "upstream.restored" });
  dana.add({ ...command, kind: "command.finished", operation: up, outcome: Outcome.OUTCOME_FAILED });
  host.add({ session: "01H1", kind: "upstream.restored" });
  host.add({ ...pod, kind: "pod.exited", outcome: Outcome.OUTCOME_FAILED });
  cut();
  session.loopStarted();
  session.build("web", "started");
  session.build("web", "failed");
  session.loopEnded("failed");
  cut();
  session.ended("process ended", undefined, 1);
  chris.session("01C2").started();
  cut();
  return parts;
}

it("each answer ends with the call that gives it again, after whatever has come since", async () => {
  await using on = await startSeededStack();
  await using mcp = await mcpClient(on.stack.http, {}, { mode: "auto" });
  const calls = callsAbout(["chris/shop", "dana/shop", "host/shop"], "01C1.1.2");
  const answers: Answer[] = [];
  for (const part of story()) {
    await on.seed(part);
    answers.push(...(await answersOf(mcp, calls)));
  }
  const second = { loop: "chris/shop/skaffold#2" };
  const position = /^Position: (.*)$/m.exec(await mcp.ask("why_failed", second))?.[1];
  const later = scenario(nameOf("chris", "skaffold"));
  const newer = later.session("01C4");
  newer.started();
  newer.configured();
  for (const outcome of ["succeeded", "failed"] as const) {
    newer.loopStarted();
    newer.loopEnded(outcome);
  }
  await on.seed(later.events);
  expect(await mcp.ask("why_failed", second)).toContain("01C4.1.2");
  expect(await mcp.ask("why_failed", { ...second, at: position })).toContain("01C1.1.2");
  // From now on, `chris/shop` is more than one source.
  const vagrant = scenario(nameOf("chris", "vagrant"));
  vagrant.add({ session: "01C3", kind: "session.started" });
  await on.seed(vagrant.events);
  expect(await askAgain(mcp, answers)).toBeGreaterThan(250);
});

/** How many events it has sent: before its first sync, after each try, and in a later loop. */
const parts = [19, 22, 26, 29, 32, 36, 50];

it("answers about a Skaffold that retries its sync are the same again", async () => {
  const recording = loadRecording(recordingFolder("10-status-check-port-forward-sync-app-logs"));
  await using fake = await startFakeSkaffold({ recording });
  await using stack = await startStack({
    skaffold: [{ developer: "alice", project: "shop", address: fake.address }],
  });
  await using mcp = await mcpClient(stack.http, {}, { mode: "auto" });
  const answers: Answer[] = [];
  for (const v1 of parts) {
    await fake.playUntil({ v1 });
    await stack.drained(fake);
    await stack.caughtUp();
    answers.push(...(await answersOf(mcp, callsAbout(["alice/shop"], "alice/shop#3"))));
  }
  await fake.play();
  await stack.drained(fake);
  await stack.caughtUp();
  expect(await askAgain(mcp, answers)).toBeGreaterThan(40);
});
