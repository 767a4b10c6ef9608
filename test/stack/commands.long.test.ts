import { beforeAll, expect, it } from "vitest";
import { recordedShop } from "./recorded-shop.ts";

const shop = recordedShop();
const { tapedeck } = shop;
beforeAll(async () => {
  await shop.stack.connected();
  await shop.fake.play();
  await shop.stack.drained(shop.fake);
});

const unrecorded = (source: string) => `nothing has been recorded for ${source}: \`tapedeck status\` lists all\n`;

it("times may be written as people write them", async () => {
  expect((await tapedeck("sessions", "--since", "10m")).out).toContain("alice/shop");
  expect((await tapedeck("sessions", "--until", "yesterday")).out).toBe("No matching sessions.\n");
  expect((await tapedeck("stats", "builds", "-s", "alice/shop", "--since", "2026-01-01")).out).toMatch(/^ARTIFACT/);
  expect((await tapedeck("stats", "builds", "-s", "bob/shop")).out).toBe("No matching builds.\n");
  const since2026 = ["-s", "alice/shop", "--since", "2026-01-01"];
  const loops = (await tapedeck("stats", "loops", "-g", "developer,label.branch", ...since2026)).out.split("\n");
  expect(loops[0]).toMatch(/^DEVELOPER +BRANCH +LOOPS +FAILED +OVERTAKEN +P50 +P90 +P99 +WAITED +WAITED FOR$/);
  // What test/skaffold/labelled-loops.ts has of this recording, added up.
  expect(loops[1]).toMatch(/^alice .* 15\.9 s +check 64 %, other 19 %, sync 13 %, build 2 %, deploy 2 %$/);
  const failures = (await tapedeck("stats", "failures", "-g", "phase,errorCode,artifact", ...since2026)).out.split(
    "\n",
  );
  expect(failures[0]).toMatch(/^PHASE +ERROR CODE +ARTIFACT +FAILURES +DEVELOPERS$/);
  expect(failures[1]).toMatch(/^check +STATUSCHECK_UNKNOWN +1 +1$/);
  expect(failures[2]).toMatch(/^sync +SYNC_UNKNOWN +1 +1$/);
  expect((await tapedeck("stats", "failures", "-s", "bob/shop")).out).toBe("No matching failures.\n");
  const green = (await tapedeck("stats", "green", ...since2026)).out.split("\n");
  expect(green[0]).toMatch(/^PHASE +RED +STILL RED +P50 +P90 +TRIED$/);
  expect(green[1]).toMatch(/^check +1 +0 +6\.7 s +6\.7 s +0$/);
  expect(green[2]).toMatch(/^sync +1 +0 +7\.7 s +7\.7 s +0$/);
  expect((await tapedeck("stats", "green", "--json", ...since2026)).out).toMatch(/^\{"items":\[/);
  const flakes = (await tapedeck("stats", "flakes", "-g", "source,artifact", ...since2026)).out.split("\n");
  expect(flakes[0]).toMatch(/^SOURCE +ARTIFACT +FLAKES +FAILED +BUILDS +SEEN BY$/);
  expect(flakes[1]).toMatch(/^default\/alice\/shop\/skaffold +\S+ +0 +0 +\d+ +0$/);
  expect((await tapedeck("stats", "flakes", "-s", "bob/shop")).out).toBe("No matching builds.\n");
  expect((await tapedeck("stats", "commands")).out).toBe("No commands yet.\n");
  expect((await tapedeck("stats", "loops", "-g", "weather")).err).toContain("weather");
  expect((await tapedeck("tail", "--since", "10m", "--no-follow", "-k", "loop.started")).out).toContain(
    "loop 1 started",
  );
  expect((await tapedeck("tail", "--since", "10m", "--until", "9m", "-k", "loop.started")).out).toBe("");
  for (const more of [[], ["--since", "10m"]]) {
    const unknown = await tapedeck("tail", "-s", "nosuch/x", "--no-follow", ...more);
    expect(unknown).toMatchObject({ code: 0, out: "", err: unrecorded("nosuch/x") });
    const known = await tapedeck("tail", "-s", "alice/shop", "-k", "pod.*", "--no-follow", ...more);
    expect(known).toMatchObject({ code: 0, out: "", err: "" });
  }
  expect((await tapedeck("tail", "--since", "soon")).err).toContain('Expected "10m", "2h" or "3d" (that long ago)');
  expect((await tapedeck("export", "-s", "alice/shop", "--since", "1h")).out).toMatch(/^\{"format":"tapedeck-session"/);
  expect((await tapedeck("export", "-s", "alice/shop", "--until", "yesterday")).err).toContain("there are no sessions");
});
