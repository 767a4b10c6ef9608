import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { it } from "vitest";
import { scenario } from "../testing/scenario.ts";
import { stage } from "../testing/stage.ts";

/** A loop of a project, with a build. */
function loopOf(workspace: string, project: string) {
  const script = scenario(sourceName({ workspace, developer: "alice", project, upstream: "skaffold" }));
  const session = script.session(`session-of-${project}`);
  session.started({}, 0);
  session.configured(1);
  session.loopStarted(1_000);
  session.build("web", "started", 1_000);
  session.build("web", "succeeded", 4_000);
  session.loopEnded("succeeded", 4_500);
  return script.events;
}

/** The counters of a page, without the label of the service. */
async function countersAt(health: string): Promise<readonly string[]> {
  const page = await (await fetch(`http://${health}/metrics`)).text();
  return page
    .split("\n")
    .filter((line) => line.startsWith("tapedeck_operations_total{") || line.startsWith("tapedeck_wait_seconds_sum{"))
    .map((line) => line.replace('service="query",', ""))
    .toSorted();
}

it("query serves the counters of each workspace, and after a restart goes on with them", async () => {
  await using on = await stage();
  await on.write(loopOf("acme", "shop"));
  await on.writeIn("globex", loopOf("globex", "site"));
  const expected = [
    ["acme", "shop"],
    ["globex", "site"],
  ].flatMap(([workspace, project]) => {
    const place = `workspace="${workspace}",project="${project}"`;
    return [
      `tapedeck_operations_total{${place},kind="build",outcome="succeeded"} 1`,
      `tapedeck_operations_total{${place},kind="loop",outcome="succeeded"} 1`,
      `tapedeck_wait_seconds_sum{${place},phase="build"} 3`,
      `tapedeck_wait_seconds_sum{${place},phase="other"} 0.5`,
    ];
  });
  const isServed = (health: string, lines: readonly string[]) =>
    until(async () => JSON.stringify(await countersAt(health)) === JSON.stringify(lines.toSorted()), {
      message: `the counters ${lines.join("\n")}`,
    });
  {
    await using query = await on.startQuery();
    await isServed(query.addresses.health, expected);
  }
  await using query = await on.startQuery();
  await isServed(query.addresses.health, expected);
  const script = scenario(sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "skaffold" }));
  const session = script.session("session-of-bob");
  session.started({}, 0);
  session.configured(1);
  session.build("web", "started", 1_000);
  session.build("web", "succeeded", 2_000);
  await on.write(script.events);
  await isServed(
    query.addresses.health,
    expected.map((line) => line.replace(/(project="shop",kind="build",outcome="succeeded"\}) 1$/, "$1 2")),
  );
});
