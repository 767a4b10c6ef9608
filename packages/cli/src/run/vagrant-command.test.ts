import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readVagrantCommand, vagrantProject } from "./vagrant-command.ts";

const read = (line: string, env: Record<string, string> = {}) =>
  readVagrantCommand(
    line.split(" ").filter((word) => word !== ""),
    env,
  );

describe("a Vagrant command line", () => {
  it.each([
    ["up", "up"],
    ["up web --provision", "up"],
    ["--no-color halt", "halt"],
    ["box add hashicorp/bionic64", "box add"],
    ["snapshot", "snapshot"],
    ["ssh web -- -A ls", "ssh"],
  ])("%s is %s", (line, subcommand) => {
    expect(read(line)).toMatchObject({ subcommand, tellsOnly: false });
  });

  it.each(["", "--version", "-v", "version", "help up", "up --help", "up -h"])("%o only tells something", (line) => {
    expect(read(line).tellsOnly).toBe(true);
  });

  it("asks a machine, not Vagrant, for what stands behind --", () => {
    expect(read("ssh -- ls --help -VVV")).toMatchObject({ tellsOnly: false, logLevel: undefined });
  });

  it.each([
    ["up", undefined, undefined],
    ["up -V", undefined, "info"],
    ["up -VVV", "WARN", "trace"],
    ["-V up", "debug", "debug"],
    ["up --debug", undefined, "debug"],
    ["up", "error", "error"],
    ["up", "loud", undefined],
  ])("%s with the level %s logs %s", (line, level, shown) => {
    expect(read(line, level === undefined ? {} : { VAGRANT_LOG_LEVEL: level }).logLevel).toBe(shown);
  });
});

describe("a Vagrant project", () => {
  const root = mkdtempSync(join(tmpdir(), "tapedeck-vagrant-"));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const inside = join(root, "cluster", "roles", "web");
  mkdirSync(inside, { recursive: true });

  it("is the folder that holds the Vagrantfile, which may be above", () => {
    expect(vagrantProject(inside, {})).toBe("web");
    writeFileSync(join(root, "cluster", "Vagrantfile"), "");
    expect(vagrantProject(inside, {})).toBe("cluster");
    expect(vagrantProject(root, {})).toBe(basename(root));
    expect(vagrantProject(root, { VAGRANT_CWD: join("cluster", "roles") })).toBe("cluster");
    expect(vagrantProject(inside, { VAGRANT_VAGRANTFILE: "Other" })).toBe("web");
    writeFileSync(join(root, "cluster", "roles", "Other"), "");
    expect(vagrantProject(inside, { VAGRANT_VAGRANTFILE: "Other" })).toBe("roles");
  });
});
