import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { startCli } from "tapedeck/testing/cli";
import { startUp } from "tapedeck/testing/up";
import { expect, inject, it } from "vitest";

/** What the page says that each command prints. */
const shown: readonly (readonly [command: string, output: RegExp])[] = [
  ["sink add here http://127.0.0.1:9900/ -k '*.failed' --start start", /^added here, .* from the start of the log\n/],
  ["sink test here", /^here: its target accepts \(204\)\n$/],
  ["sink list", /^here +http:\/\/127\.0\.0\.1:\d+ +\S+ /m],
  ["sink rewind here --to 10m", /^here goes on after \S+\n$/],
  ["sink remove here", /^removed here\n$/],
];

it("the example of docs/sinks.md works on one machine from its beginning to its end", {
  timeout: 600_000,
}, async () => {
  const page = await readFile(new URL("../../docs/sinks.md", import.meta.url), "utf8");
  const [, section = ""] = /^## Try it on this machine\n(.*?)^## /ms.exec(page) ?? [];
  const blocks = [...section.matchAll(/^```(\w*)\n(.*?)^```/gms)];
  const port = String(await ownPort());
  const of = (language: string) =>
    blocks.flatMap(([, found, text = ""]) => (found === language ? [text.replaceAll("9900", port)] : []));
  const [receiver = ""] = of("js");
  const [settings = ""] = of("yaml");
  const lines = of("").flatMap((block) => block.trim().split("\n"));
  const typed = shown.map(([command]) => `tapedeck ${command.replace("9900", port)}`);
  expect(lines).toEqual(["node receiver.mjs", "tapedeck up --demo", ...typed]);

  const cwd = await mkdtemp(join(inject("serversFolder"), "sinks-page-"));
  await writeFile(join(cwd, "receiver.mjs"), receiver);
  await writeFile(join(cwd, "tapedeck.yaml"), settings);
  await using cleanup = new AsyncDisposableStack();
  const printing = spawn(process.execPath, ["receiver.mjs"], { cwd, stdio: ["ignore", "pipe", "inherit"] });
  cleanup.defer(async () => void (printing.kill() && (await once(printing, "exit"))));
  let printed = "";
  printing.stdout.on("data", (text: Buffer) => {
    printed += text;
  });
  const up = await startUp({ cwd, args: ["--demo"] });
  cleanup.defer(async () => void (await up.stop()));

  for (const [index, line] of lines.slice(2).entries()) {
    const words = line.replaceAll("'", "").split(" ").slice(1);
    await using cli = startCli(words, { cwd, env: { ...up.env, NO_COLOR: "1" } });
    expect(await cli.ended, cli.stderr()).toBe(0);
    expect(cli.stdout()).toMatch(shown[index]?.[1] ?? /^$/);
    // The first line that the page shows comes with the test, the other one with the events.
    const [tested = "", delivered = ""] = [...section.matchAll(/`(dev\.tapedeck\S+ \S+)`/g)].map(([, text]) => text);
    const awaited = [delivered, tested][index];
    if (awaited !== undefined) await until(() => printed.split("\n").includes(awaited), { message: awaited });
  }
});
