import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "@tapedeck/shared/version";
import { afterAll, expect, it } from "vitest";
import { clockFinding, tokenFinding, versionFinding } from "./chosen.ts";
import { checkDataFolder, checkNames, checkNode, checkPrograms, diskFinding } from "./this-machine.ts";

const folder = mkdtempSync(join(tmpdir(), "doctor-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("Node.js has to be new enough", () => {
  expect(checkNode("18.20.1")).toMatchObject({ state: "fail", what: "18.20.1 is too old" });
  expect(checkNode("20.0.0")).toEqual({ check: "Node.js", state: "ok", what: "20.0.0" });
});

it("the data folder is one, or can be made, and the disk has room", async () => {
  const file = join(folder, "file");
  writeFileSync(file, "");
  expect(await checkDataFolder(file)).toMatchObject([{ state: "fail", what: `${file} is a file` }]);
  const [later] = await checkDataFolder(join(folder, "a", "b"));
  expect(later).toMatchObject({ state: "ok", what: expect.stringContaining("created at the first start") });
  expect([10, 2 ** 29, 2 ** 40].map((free) => diskFinding(free).state)).toEqual(["fail", "warn", "ok"]);
});

it("names are printed as they are recorded", () => {
  const names = (developer: string, project: string) =>
    checkNames({ TAPEDECK_DEVELOPER: developer, TAPEDECK_PROJECT: project }, folder);
  expect(names("alice", "shop")).toMatchObject({ state: "ok", what: "recorded here as alice/shop" });
  expect(names("Alice B", "shop")).toMatchObject({
    state: "warn",
    what: expect.stringMatching(/^Alice B\/shop is recorded/),
  });
});

it("programs are searched for on the PATH, where a folder is none", () => {
  mkdirSync(join(folder, "vagrant"));
  const program = join(folder, "skaffold");
  writeFileSync(program, "#!/bin/sh\n");
  chmodSync(program, 0o755);
  expect(checkPrograms(`/nonexistent:${folder}`)).toMatchObject([
    { check: "Skaffold", state: "ok", what: program },
    { check: "Vagrant", state: "warn" },
  ]);
});

it("versions may differ as far as they understand each other", () => {
  expect(versionFinding(version)).toMatchObject({ state: "ok" });
  expect(versionFinding("0.2.0", "0.1.9").state).toBe("warn");
  expect(versionFinding("0.1.3", "0.1.9").state).toBe("ok");
  expect(versionFinding("1.4.0", "1.2.0").state).toBe("ok");
  expect(versionFinding("2.0.0", "1.2.0").state).toBe("warn");
});

it("a token is needed where one is asked for, and its roles are printed", () => {
  const token = (...roles: string[]) => ({ name: "me", workspace: "acme", roles });
  expect(tokenFinding({ auth: "none" }).state).toBe("ok");
  expect(tokenFinding({ auth: "tokens" })).toMatchObject({ state: "fail", advice: expect.stringContaining("login") });
  expect(tokenFinding({ auth: "tokens", token: token("recorder", "viewer") }).state).toBe("ok");
  expect(tokenFinding({ auth: "tokens", token: token("recorder") }).what).toContain("it can't read");
  expect(tokenFinding({ auth: "tokens", token: token("viewer") }).what).toContain("it can't record");
});

it("clocks that disagree are reported", () => {
  expect(clockFinding(-900).state).toBe("ok");
  expect(clockFinding(65_000)).toMatchObject({ state: "warn", what: "this machine is 1 min 5 s behind" });
});
