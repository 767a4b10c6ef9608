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

it("names the nearest command to a mistyped one", async () => {
  const cli = startCli(["statuss"], { cwd: tmpdir() });
  expect(await cli.ended).toBe(1);
  expect(cli.stderr()).toBe("tapedeck: unknown command 'statuss'\n(Did you mean status?)\n(see --help)\n");
});

it("says how a source is named to who gives it as an argument", async () => {
  for (const words of [["loops"], ["stats", "builds"]]) {
    await using cli = startCli([...words, "bob/shop"], { cwd: tmpdir() });
    expect(await cli.ended).toBe(1);
    expect(cli.stderr()).toBe(
      `tapedeck: too many arguments for '${words.at(-1)}'. Expected 0 arguments but got 1: bob/shop.\n(Did you mean -s bob/shop?)\n(see --help)\n`,
    );
  }
  // It has no such flag.
  await using cli = startCli(["status", "bob/shop"], { cwd: tmpdir() });
  expect(await cli.ended).toBe(1);
  expect(cli.stderr()).not.toContain("Did you mean");
});
