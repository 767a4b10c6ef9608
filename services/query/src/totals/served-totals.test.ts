import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { queryClient } from "../testing/client.ts";
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

const isServed = (health: string, lines: readonly string[]) =>
  until(async () => JSON.stringify(await countersAt(health)) === JSON.stringify(lines.toSorted()), {
    message: `the counters ${lines.join("\n")}`,
  });

/** The counters of a `loopOf`. */
function countersOf(workspace: string, project: string): readonly string[] {
  const place = `workspace="${workspace}",project="${project}"`;
  return [
    `tapedeck_operations_total{${place},kind="build",outcome="succeeded"} 1`,
    `tapedeck_operations_total{${place},kind="loop",outcome="succeeded"} 1`,
    `tapedeck_wait_seconds_sum{${place},phase="build"} 3`,
    `tapedeck_wait_seconds_sum{${place},phase="other"} 0.5`,
  ];
}

it("a standby that answers has no counters, which would count twice, until it projects", async () => {
  await using on = await stage();
  await on.write(loopOf("acme", "shop"));
  await using first = await on.startQuery();
  await using standby = await on.startQuery();
  await isServed(first.addresses.health, countersOf("acme", "shop"));
  using ask = queryClient(standby.address);
  // From now on the standby has the log of the workspace, too.
  await until(async () => (await ask.listSources()).items.length === 1, { message: "the standby's answer" });
  expect(await countersAt(standby.addresses.health)).toEqual([]);
  expect(await countersAt(first.addresses.health)).toEqual(countersOf("acme", "shop").toSorted());
  await first[Symbol.asyncDispose]();
  await isServed(standby.addresses.health, countersOf("acme", "shop"));
});

it("query serves the counters of each workspace, and after a restart goes on with them", async () => {
  await using on = await stage();
  await on.write(loopOf("acme", "shop"));
  await on.writeIn("globex", loopOf("globex", "site"));
  const expected = [...countersOf("acme", "shop"), ...countersOf("globex", "site")];
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
