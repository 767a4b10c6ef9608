import { describe, expect, it } from "vitest";
import { readVagrantCommand } from "./command.ts";

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
    expect(read(line)).toMatchObject({ subcommand, isInformational: false });
  });

  it.each(["", "--version", "-v", "version", "help up", "up --help", "up -h"])("%o only prints something", (line) => {
    expect(read(line).isInformational).toBe(true);
  });

  it("has no flag of a log in a machine that is called constructor", () => {
    expect(read("up constructor toString").logLevel).toBeUndefined();
  });

  it("asks a machine, not Vagrant, for what stands behind --", () => {
    expect(read("ssh -- ls --help -VVV")).toMatchObject({ isInformational: false, logLevel: undefined });
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
