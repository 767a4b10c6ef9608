import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { version } from "@tapedeck/shared/version";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { complaintsOf, componentsOf, readBom } from "./testing/bom.ts";
import { type Built, built } from "./testing/built.ts";
import { installedPackages } from "./testing/installed-packages.ts";

const run = promisify(execFile);
const canTry = process.getuid?.() === 0 && existsSync("/usr/bin/dpkg-deb") && existsSync("/usr/bin/unshare");

/** Stands for Debian's package of Node, where this machine has its Node from elsewhere. */
const nodePackage = `
dpkg-query --show nodejs >/dev/null 2>&1 || {
mkdir -p /tmp/nodejs/DEBIAN
printf 'Package: nodejs\\nVersion: 20.0.0\\nArchitecture: all\\nMaintainer: x <x@localhost>\\nDescription: x\\n' > /tmp/nodejs/DEBIAN/control
dpkg-deb --build /tmp/nodejs /tmp/nodejs.deb >/dev/null
dpkg --install /tmp/nodejs.deb >/dev/null
}
`;

const units = ["tapedeck-ingest", "tapedeck-query", "tapedeck-gateway", "tapedeck-nats"];

/**
 * On a copy of this machine: its file system under an overlay, in a mount namespace of its own. Nothing that is done
 * there is seen outside, or stays.
 */
describe.skipIf(!canTry)("the Debian package", { timeout: 600_000 }, () => {
  let dist: Built;
  let folder = "";

  beforeAll(async () => {
    dist = await built("debian");
    folder = await mkdtemp(join(tmpdir(), "tapedeck-deb-"));
  }, 600_000);
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await dist?.[Symbol.asyncDispose]();
  });

  /** Runs a script as root on the copy. @returns all that it says */
  const onCopy = async (script: string): Promise<string> => {
    const file = join(folder, "script.sh");
    await writeFile(file, `set -e\nexec 2>&1\n${script}`);
    const copy = join(folder, "copy");
    const enter = [
      `mkdir -p ${copy} && mount -t tmpfs none ${copy} && cd ${copy} && mkdir upper work root`,
      "mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root",
      "mount --rbind /proc root/proc && mount --rbind /dev root/dev && mount -t tmpfs none root/tmp",
      `cp ${file} root/tmp/script.sh && cp ${join(dist.folder, `tapedeck_${version}_all.deb`)} root/tmp/tapedeck.deb`,
      `cp "$(command -v ${inject("natsServer")})" root/tmp/nats-server`,
      "chroot root /bin/sh /tmp/script.sh",
      // What the script has written and not taken away; else there are only marks of what it has deleted.
      "cd upper && find . -name '*tapedeck*' -not -type c | sed 's/^[.]/left /'",
    ];
    const { PATH } = process.env;
    const env = {
      PATH: `${PATH?.split(":")
        .filter((each) => !each.includes("node_modules"))
        .join(":")}:/usr/sbin:/sbin`,
    };
    const { stdout } = await run("unshare", ["--mount", "/bin/sh", "-ec", enter.join("\n")], { env });
    return stdout;
  };

  it("is installed with its units and secrets of its own, and purged without a trace", async () => {
    const output = await onCopy(`${nodePackage}
dpkg --install /tmp/tapedeck.deb
echo "version $(tapedeck --version) $(tapedeck-server --version)"
stat -c 'secret %a %n' /etc/tapedeck/*.env
stat -c 'public %a %n' /etc/tapedeck/*.conf
first=$(cat /etc/tapedeck/*.env)
dpkg --install /tmp/tapedeck.deb >/dev/null
[ "$first" = "$(cat /etc/tapedeck/*.env)" ] && echo "secrets stay"
set -a; . /etc/tapedeck/nats.env; set +a
/tmp/nats-server -t -c /etc/tapedeck/nats.conf
getent group tapedeck >/dev/null && echo "group"
dpkg --purge tapedeck
getent group tapedeck || echo "no group"
`);
    expect(output).toContain(`version ${version} ${version}`);
    const secrets = [...output.matchAll(/^secret 600 .*\/(\w+)\.env$/gm)].map(([, name]) => name);
    expect(secrets).toEqual(["cli", "gateway", "ingest", "nats", "query", "services"]);
    expect(output).toContain("public 644 /etc/tapedeck/nats-users.conf");
    expect(output).toMatch(/nats\.conf.* is valid/);
    expect(output).toContain("secrets stay");
    expect(output).toContain("group");
    expect(output).toContain("no group");
    expect(output.match(/^left (?!\/var\/(log|lib\/dpkg|cache)).*/gm) ?? []).toEqual([]);
  });

  it("says in one sentence that a nats-server is too old, and nothing of one that is not", async () => {
    const output = await onCopy(`${nodePackage}
for version in 2.10.27 2.12.0; do
  printf '#!/bin/sh\\necho nats-server: v%s\\n' $version > /usr/sbin/nats-server
  chmod 755 /usr/sbin/nats-server
  dpkg --install /tmp/tapedeck.deb | sed "s/^/$version: /"
done
rm /usr/sbin/nats-server
dpkg --purge tapedeck
`);
    expect(output.match(/^.*too old.*$/gm)).toEqual([
      expect.stringMatching(/^2\.10\.27: tapedeck: .* \(2\.10\.27; 2\.12 or newer is needed\): put a newer one there/),
    ]);
  });

  it("has a bill of materials of all packages that it installs", async () => {
    const file = join(dist.folder, `tapedeck_${version}_all`);
    const unpacked = join(folder, "unpacked");
    await run("dpkg-deb", ["--extract", `${file}.deb`, unpacked]);
    const packages = await installedPackages(join(unpacked, "usr/lib/tapedeck/node_modules"));
    const bom = await readBom(`${file}.cdx.json`);
    expect(await complaintsOf(bom)).toEqual([]);
    const installed = packages.map(({ name, version }) => `${name}@${version}`);
    expect(installed.filter((one) => !componentsOf(bom).includes(one))).toEqual([]);
    // In the page and in the command line, which are bundles.
    expect(bom.components.map(({ name }) => name)).toEqual(expect.arrayContaining(["preact", "chrono-node"]));
  });

  it.skipIf(!existsSync("/usr/bin/systemd-analyze"))(
    "has units that systemd understands, and that may do little",
    async () => {
      const output = await onCopy(`${nodePackage}
dpkg --install /tmp/tapedeck.deb >/dev/null
[ -x /usr/sbin/nats-server ] || { printf '#!/bin/sh\\n' > /usr/sbin/nats-server; chmod 755 /usr/sbin/nats-server; }
systemd-analyze verify --man=no ${units.map((unit) => `${unit}.service`).join(" ")} tapedeck.target && echo "understood"
for unit in ${units.join(" ")}; do
  systemd-analyze security --offline=true --no-pager $unit.service | sed -n 's/.*Overall exposure level for //p'
done
`);
      expect(output).toContain("understood");
      expect(output).not.toMatch(/tapedeck[^\n]*(Unknown|Failed|ignoring)/i);
      const levels = [...output.matchAll(/^(tapedeck-\w+)\.service: ([\d.]+)/gm)];
      expect(levels.map(([, unit]) => unit)).toEqual(units);
      // systemd rates from 0 (best) to 10; an ordinary service has more than 9.
      for (const [, unit, level] of levels)
        expect([unit, Number(level)]).toEqual([unit, expect.toSatisfy((n: number) => n < 2.5)]);
    },
  );
});
