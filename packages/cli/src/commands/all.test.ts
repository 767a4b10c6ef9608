import { tmpdir } from "node:os";
import { expect, it } from "vitest";
import { startCli } from "../testing/cli.ts";
import { allCommands, commandsFor } from "./all.ts";

/** Makes a process write the path of each module that it loads. */
const tracing = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module";
  registerHooks({ load(url, context, next) { process.stderr.write(url + "\\n"); return next(url, context); } });
`)}`;

it("finds each command by its name", async () => {
  for (const command of await allCommands()) {
    const found = await commandsFor(command.name());
    expect(found.map((one) => one.name())).toEqual([command.name()]);
  }
});

it("gives all commands where none is named", async () => {
  const all = (await allCommands()).map((command) => command.name());
  for (const word of [undefined, "help", "--help", "complete", "constructor", "statu"])
    expect((await commandsFor(word)).map((command) => command.name())).toEqual(all);
});

it("loads the description of no other command than the one that is asked for", async () => {
  const cli = startCli(["status", "--help"], { cwd: tmpdir(), env: { NODE_OPTIONS: `--import="${tracing}"` } });
  expect(await cli.ended).toBe(0);
  expect(cli.stdout()).toContain("Usage: tapedeck status [options]");
  const loaded = [...cli.stderr().matchAll(/commands\/([a-z-]+)\/command\.ts$/gm)].map(([, name]) => name);
  expect(loaded).toEqual(["status"]);
});

/** What `tapedeck` would have to be called with instead of these words, as the error says it. */
async function suggested(...words: string[]): Promise<string | undefined> {
  await using cli = startCli(words, { cwd: tmpdir() });
  expect(await cli.ended).toBe(1);
  expect(cli.stderr()).toMatch(/^tapedeck: .*\n(Did you mean this\?\n.*\n)?\(see --help\)\n$/);
  return /^ {4}\S*tapedeck (.*)$/m.exec(cli.stderr())?.[1];
}

it("suggests the line that was probably meant", async () => {
  const meant = {
    statuss: "status",
    "stats build --since 7d": "stats builds --since 7d",
    "loops --outcom failed": "loops --outcome failed",
    "get loops -n 5": "loops -n 5",
    "loops -n shop": "loops --project shop",
    "why loop 54": "why 54",
    tokens: "token list",
    "tail --al x": "tail --all x",
    "run --labl a=b -- make --al": "run --label a=b -- make --al",
  };
  for (const [typed, line] of Object.entries(meant))
    expect([typed, await suggested(...typed.split(" "))]).toEqual([typed, line]);
  expect(await suggested("tail", "-k", "x", "--since", "soon")).toBeUndefined();
  expect(await suggested("supercalifragilistic")).toBeUndefined();
});

it("prints its help where no command is named", async () => {
  await using cli = startCli([], { cwd: tmpdir() });
  expect(await cli.ended).toBe(0);
  expect(cli.stdout()).toContain("Usage: tapedeck [options] [command]");
});
