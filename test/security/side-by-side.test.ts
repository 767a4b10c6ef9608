import { afterAll, expect, it } from "vitest";
import { httpCall } from "../stack/http-call.ts";
import { bearing, startTokenStack } from "../stack/token-stack.ts";
import { holds, workspaceScenario } from "../stack/two-workspaces.ts";

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());

const place = (developer: string) => ({ workspace: "acme", developer });
const [alice, bob] = [workspaceScenario("globex", place("alice")), workspaceScenario("acme", place("bob"))];

/** Two developers of a workspace with the same recordings, and an admin of it. */
async function startTeam(env: Readonly<Record<string, string>>) {
  const harness = cleanup.use(await startTokenStack(env));
  await harness.on.seed(alice.events);
  await harness.on.seed(bob.events);
  const admin = (await harness.token("acme", ["admin"], 3_600_000, null)).text;
  const get = (path: string) => httpCall(harness.on.stack.http, "GET", `/api/v1/${path}`, bearing(admin));
  return { get };
}

it("developers are not put side by side unless that is switched on", async () => {
  const { get } = await startTeam({ TAPEDECK_PRIVACY_COMPARE_DEVELOPERS: "false" });
  const refused = [
    ...["group=developer", "group=day,developer", "group=source"].map((query) => `stats/builds?${query}`),
    "compare?left=alice/shop/skaffold&right=bob/shop/skaffold",
  ];
  for (const path of refused) {
    const { status, body } = await get(path);
    expect([path, status, body]).toEqual([path, 403, expect.stringContaining("privacy.compareDevelopers")]);
  }
  for (const path of ["stats/builds?group=project", "stats/builds?developer=bob", "sources"]) {
    expect([path, (await get(path)).status]).toEqual([path, 200]);
  }
});

it("developers that are hidden from admins are in the sums that these see, and nowhere else", async () => {
  const { get } = await startTeam({ TAPEDECK_PRIVACY_DEVELOPERS: "hidden-from-admins" });
  for (const path of [
    "sources",
    "sessions",
    "operations",
    "events",
    "search?text=build",
    "stats/builds?group=developer",
  ]) {
    const { body } = await get(path);
    for (const { mark } of [alice, bob]) expect([path, holds(body, mark)]).toEqual([path, false]);
  }
  const [sum] = JSON.parse((await get("stats/builds")).body).items;
  expect(Number(sum.count)).toBeGreaterThan(0);
});
