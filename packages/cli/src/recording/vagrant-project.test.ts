import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { vagrantProject } from "./vagrant-project.ts";

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
