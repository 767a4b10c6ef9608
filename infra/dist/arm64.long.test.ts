import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "@tapedeck/shared/version";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacking, onMachine } from "../docker/testing/on-machine.ts";
import { downloadDebianPackages, unpackDebianPackages } from "../local/debian-packages.ts";
import { type Built, built } from "./testing/built.ts";

const why = lacking(["qemu-aarch64-static", "apt-get", "dpkg"], { asRoot: false });

/** What Node is linked to. */
const libraries = ["libc6", "libstdc++6", "libgcc-s1", "libatomic1"];

/** On a processor of another kind: qemu runs the program, with Debian's libraries for it. */
describe.skipIf(why !== undefined)(
  `the executable for arm64${why === undefined ? "" : ` (${why})`}`,
  { timeout: 600_000 },
  () => {
    let dist: Built;
    let folder = "";

    beforeAll(async () => {
      dist = await built("arm64");
      folder = await mkdtemp(join(tmpdir(), "tapedeck-arm64-"));
      const packages = join(folder, "packages");
      const expected = { folder: packages, suite: "trixie", names: libraries, architecture: "arm64" };
      await unpackDebianPackages(await downloadDebianPackages(expected), join(folder, "root"));
      // The link is Debian's base-files', whose rest is not needed.
      await symlink("usr/lib", join(folder, "root", "lib"));
    }, 600_000);
    afterAll(async () => {
      await rm(folder, { recursive: true, force: true });
      await dist?.[Symbol.asyncDispose]();
    });

    const tapedeck = (...words: readonly string[]) =>
      onMachine("qemu-aarch64-static", [
        ...["-L", join(folder, "root")],
        ...[join(dist.folder, `tapedeck-${version}-linux-arm64`), ...words],
      ]);

    it("starts, and says its version", async () => {
      expect(await tapedeck("--version")).toBe(`${version}\n`);
    });

    it("is the whole command line", async () => {
      const help = await tapedeck("tail", "--help");
      expect(help).toContain("Usage: tapedeck tail");
      expect(help).toContain("--after");
    });
  },
);
