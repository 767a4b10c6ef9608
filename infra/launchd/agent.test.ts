import { join } from "node:path";
import { expect, it } from "vitest";
import { lacking, onMachine } from "../docker/testing/on-machine.ts";
import { temporaryFolder } from "../testing/temporary-folder.ts";

const agent = join(import.meta.dirname, "dev.tapedeck.up.plist");

const noXmllint = lacking(["xmllint"], { asRoot: false });
it.skipIf(noXmllint !== undefined)(
  `the agent is well-formed XML${noXmllint === undefined ? "" : ` (${noXmllint})`}`,
  async () => {
    expect(await onMachine("xmllint", ["--nonet", "--noout", agent])).toBe("");
  },
);

const noPlistutil = lacking(["plistutil"], { asRoot: false });
it.skipIf(noPlistutil !== undefined)(
  `the agent is a property list that runs tapedeck up${noPlistutil === undefined ? "" : ` (${noPlistutil})`}`,
  async () => {
    // plistutil checks what it reads only on the way to its binary form.
    const binary = join(await temporaryFolder(), "agent.bin");
    await onMachine("plistutil", ["--infile", agent, "--format", "bin", "--outfile", binary]);
    const list = await onMachine("plistutil", ["--infile", binary, "--format", "xml"]);
    const label = /<key>Label<\/key>\s*<string>(.+)<\/string>/.exec(list)?.[1];
    expect(agent).toContain(`${label}.plist`);
    expect(list.replace(/\s+/g, "")).toContain(
      "<array><string>/opt/homebrew/bin/tapedeck</string><string>up</string><string>--no-demo</string>",
    );
  },
);
