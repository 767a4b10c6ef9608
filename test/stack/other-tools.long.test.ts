import { until } from "@tapedeck/shared/testing/until";
import { beforeAll, expect, it } from "vitest";
import { recordedShop } from "./recorded-shop.ts";

// What people type who know gh, kubectl, docker or stern.

const shop = recordedShop();

beforeAll(async () => {
  await shop.fake.playUntil({ v1: 100 });
  await until(async () => (await shop.tapedeck("loops")).out.includes("alice/shop#1"), { message: "a loop" });
});

/** True once it shows something, whether it then ends or follows; else what it said. */
async function shows(words: readonly string[]): Promise<true | string> {
  await using cli = shop.start(words);
  let isOver = false;
  void cli.ended.then(() => {
    isOver = true;
  });
  await until(() => isOver || cli.stdout() !== "", { message: words.join(" ") });
  if (!isOver) return true;
  return (await cli.ended) === 0 && cli.stdout() !== "" ? true : cli.stderr();
}

it.each([
  "logs -f alice/shop",
  "logs --since 10m",
  "logs --tail=50",
  "logs --tail 50 shop",
  "logs -t alice/shop",
  "logs alice/shop -c web",
  "get loops",
  "get loop 1",
  "get pods",
  "get pods -o wide",
  "get events",
  "describe pod web",
  "status -o wide",
  "config view",
  "auth status",
  "whoami",
  "cluster-info",
  "api-resources",
  "errors",
  "exec -it web sh",
  "login --token",
  "run view --log-failed",
  "ps",
  "ps -a",
  "ls",
  "list sessions",
  "status -o json",
  "sessions --format json",
  "describe alice/shop",
  "events --watch",
  "events -f",
  "loops -w",
  "loops -n 5",
  "loops -A",
  "loops --limit 5",
  "loops --namespace shop",
  "loops -n shop",
  "sessions -l branch=main",
  "run view",
  "run list",
  "run list --limit 5",
  "status --context prod",
  "tail -n 20",
  "top",
  "stats build",
  "sesions",
  "state shop",
  "version",
  "--version",
  "-h",
  "help run",
  "help kinds",
])("`tapedeck %s` shows what was meant, or names the line that does", async (typed) => {
  const words = typed.split(" ");
  const said = await shows(words);
  if (said === true) return;
  const line = /^Did you mean this\?\n {4}\S*tapedeck (.*)$/m.exec(said)?.[1];
  expect(line, said).toBeDefined();
  expect(await shows(line?.split(" ") ?? [])).toBe(true);
});

it("`wait` for a condition of kubectl names the line that waits for an event", async () => {
  for (const words of [["--for=condition=ready"], ["--for", "condition=ready"]]) {
    const said = (await shop.tapedeck("wait", ...words, "shop")).err;
    expect(said).toMatch(/^Did you mean this\?\n {4}\S*tapedeck wait --for loop\.succeeded shop$/m);
  }
});
