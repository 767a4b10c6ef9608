import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { sourceName } from "@tapedeck/shared/source";
import { type Scenario, type SkaffoldSession, scenario } from "./scenario.ts";

export type Random = (below: number) => number;

/** A generator that returns the same numbers for the same seed. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/**
 * About `size` events of several concurrent developers in two workspaces. Each has consecutive sessions that loop, fail,
 * end during a build, reload and reconnect. Some sessions are erased.
 */
export function randomEvents(random: Random, size: number): Event[] {
  const scenarios = ["acme/alice/shop", "acme/bob/shop", "globex/carol/site"].map((name) => {
    const [workspace = "", developer = "", project = ""] = name.split("/");
    return randomSource(
      random,
      scenario(sourceName({ workspace, developer, project, upstream: "skaffold" })),
      size / 3,
    );
  });
  // Sources take turns in runs, as their writers do.
  const events: Event[] = [];
  while (scenarios.some((own) => own.length > 0)) {
    const own = scenarios[random(scenarios.length)] ?? [];
    events.push(...own.splice(0, 1 + random(20)));
  }
  return events;
}

function randomSource(random: Random, script: Scenario, size: number): Event[] {
  script.add({
    kind: "source.added",
    detail: { $case: "source_detail", value: { developer_name: "A. Lice", project_name: "Shop" } },
  });
  for (let number = 1; script.events.length < size; number += 1) {
    const id = `${script.source.replaceAll("/", "-")}-${number}`;
    script.add({
      kind: "upstream.connected",
      session: id,
      detail: { $case: "upstream", value: { address: `127.0.0.1:${50_000 + number}` } },
    });
    const session = script.session(id);
    session.started({ branch: ["main", "fix", "wild\0card"][random(3)] ?? "", number: String(number) });
    // The first session is long enough for snapshots.
    const length = number === 1 ? 700 : 20 + random(150);
    const end = Math.min(script.events.length + length, size);
    session.configured();
    while (script.events.length < end) randomLoop(random, script, session);
    if (random(4) > 0) {
      if (random(3) === 0) session.lost("replaced by another process");
      else session.ended(["process ended", "replaced\0"][random(2)]);
      if (random(4) === 0) {
        script.add({ kind: "upstream.restored", session: id });
        if (random(2) === 0) session.loopEnded("failed");
      }
    }
    if (number > 1 && random(6) === 0) script.add({ kind: "session.erased", session: id, subject: id });
  }
  const lastId = `${script.source.replaceAll("/", "-")}-last`;
  // Every session has a connection of its own, so an erased session's connection is erased with it.
  script.add({
    kind: "upstream.connected",
    session: lastId,
    detail: { $case: "upstream", value: { address: "127.0.0.1:50000" } },
  });
  const last = script.session(lastId);
  last.started();
  last.configured();
  last.loopStarted();
  last.build("web", "started");
  last.resource("deployment/web", "ready");
  last.port(8_080);
  last.debugger("web", "attached");
  return script.events;
}

function randomLoop(random: Random, script: Scenario, session: SkaffoldSession): void {
  if (random(10) === 0) session.configured();
  const began = session.loopStarted();
  const labelled = random(4) === 0;
  const late = random(3) === 0;
  const label = () => session.labelled({ branch: ["main", "fix", "", "wild\0card"][random(4)] ?? "" }, began);
  if (labelled && !late) label();
  const artifacts = ["web", "api", "worker", "odd\0name", "n".repeat(3_000)].slice(0, 1 + random(5));
  for (const artifact of artifacts) {
    if (random(5) === 0) session.cached(artifact);
    else session.build(artifact, "started");
    for (let lines = random(4); lines > 0; lines -= 1) session.text(`\u001b[32mStep ${lines}\u0000\n`);
    session.mirrored(artifact, "InProgress");
  }
  for (const artifact of artifacts) {
    if (random(8) > 0)
      session.build(artifact, (["succeeded", "succeeded", "failed", "canceled"] as const)[random(4)] ?? "failed");
  }
  if (random(2) === 0) {
    session.phase("deploy", "started");
    session.phase("check", "started");
    session.resource("deployment/web", "pending");
    session.resource("deployment/web", "ready");
    session.phase("check", "succeeded");
    session.phase("deploy", random(3) === 0 ? "failed" : "succeeded");
    session.port(9_000 + random(3));
    session.debugger(["c", "d"][random(2)] ?? "c", random(2) === 0 ? "attached" : "detached");
  }
  if (random(6) === 0) {
    script.add({
      kind: "session.gap",
      session: session.session,
      detail: { $case: "gap", value: { channel: "v1", reason: "spill full", dropped: { frames: 3n } } },
    });
  }
  if (random(6) === 0) {
    const value = { channel: "v2", reason: "its stream broke", open: true };
    script.add({ kind: "session.gap", session: session.session, detail: { $case: "gap", value } });
    session.adopted({ web: ["Failed", "Not Started"][random(2)] ?? "", api: "Complete" });
    session.mirrored("api", "Failed");
    if (random(3) > 0)
      script.add({ kind: "session.gap_filled", session: session.session, detail: { $case: "gap", value } });
  }
  if (random(6) === 0) session.adopted({ web: ["Failed", "Not Started"][random(2)] ?? "", api: "Complete" });
  if (random(8) === 0)
    script.add({
      kind: "upstream.lost",
      session: session.session,
      detail: { $case: "upstream", value: { reason: "hung up", code: 14 } },
    });
  if (random(5) > 0) {
    session.loopEnded(random(4) === 0 ? "failed" : "succeeded");
    // Skaffold reports the loop again each time that its sync is retried.
    for (let tries = random(3) === 0 ? random(3) : 0; tries > 0; tries -= 1) {
      const verb = random(2) === 0 ? "failed" : "succeeded";
      session.phase("sync", "started");
      session.phase("sync", verb);
      session.loopEnded(verb);
    }
  }
  // Git may take its time.
  if (labelled && late) {
    if (random(2) === 0) session.loopStarted();
    label();
  }
}
