import { chmod, copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { npmPackages } from "@tapedeck/infra/names";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { until } from "@tapedeck/shared/testing/until";
import { version } from "@tapedeck/shared/version";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacking } from "../docker/testing/on-machine.ts";
import { root } from "./places.ts";
import { type BootedDebian, bootDebian, bootTools } from "./testing/booted-debian.ts";
import { built } from "./testing/built.ts";
import { installPage } from "./testing/install-page.ts";

const why = lacking([...bootTools, "dpkg-deb"]);
const services = ["tapedeck-ingest", "tapedeck-query", "tapedeck-gateway"];
const units = ["tapedeck-nats", ...services].join(" ");
const dist = `/usr/lib/tapedeck/node_modules/${npmPackages.server}/dist`;

/** A Debian that boots with systemd, with Debian's own Node, nats-server and Postgres. */
describe.skipIf(why !== undefined)(
  `the Debian package on a booted Debian${why === undefined ? "" : ` (${why})`}`,
  { timeout: 600_000 },
  () => {
    const cleanup = new AsyncDisposableStack();
    let debian: BootedDebian;

    beforeAll(async () => {
      const folder = await mkdtemp(join(tmpdir(), "tapedeck-boot-"));
      cleanup.defer(() => rm(folder, { recursive: true, force: true }));
      await using made = await built("debian");
      const packages = ["nodejs", "nats-server", "postgresql"];
      debian = cleanup.use(await bootDebian(folder, packages));
      await copyFile(
        join(made.folder, `tapedeck_${version}_all.deb`),
        join(debian.root, `root/tapedeck_${version}_all.deb`),
      );
    }, 1_200_000);
    afterAll(() => cleanup.disposeAsync());

    const show = (unit: string, property: string) =>
      debian.run(`systemctl show --value --property ${property} ${unit}`).then((text) => text.trim());
    const allActive = () =>
      until(async () => !/^(?!active$)/m.test((await debian.run(`systemctl is-active ${units} || true`)).trim()), {
        message: "all units to be active",
      });

    it("starts all units once it is installed, and systemd waits for what they report", async () => {
      const began = performance.now();
      const [typed = ""] = (await installPage()).typed("a server");
      expect(typed).toBe("apt install ./tapedeck_<version>_all.deb");
      await debian.run(`cd /root; export DEBIAN_FRONTEND=noninteractive; ${typed.replace("<version>", version)} --yes`);
      await allActive();
      console.log(`installed and started in ${((performance.now() - began) / 1_000).toFixed(0)} s`);
      for (const unit of services) {
        expect([unit, await show(unit, "Type"), await show(unit, "StatusText")]).toEqual([unit, "notify", "ready"]);
      }
      expect(await debian.run(`systemctl is-enabled ${units} tapedeck.target`)).toBe("enabled\n".repeat(5));
      await until(() => debian.run("tapedeck-server check --ready").catch(() => undefined), {
        message: "the services to be ready",
      });
      expect(await debian.run("tapedeck --version")).toBe(`${version}\n`);
    });

    it("records a Skaffold in Debian's NATS and Postgres", async () => {
      const recording = `${dist}/recordings/skaffold/01-dev-success-3-artifacts-5-iterations`;
      const inBackground = (unit: string, command: string) =>
        debian.run(`systemd-run --quiet --collect --unit ${unit} --working-directory /root ${command}`);
      await inBackground("stand-in", `node ${dist}/fakes-skaffold.js --recording ${recording} --speed max`);
      const port = await until(
        async () => /"port":(\d+)/.exec(await debian.run("journalctl --unit stand-in --output cat"))?.[1],
        { message: "the stand-in Skaffold" },
      );
      const what = `--upstream skaffold --address 127.0.0.1:${port} --developer alice --project shop`;
      await inBackground("recorder", `tapedeck record ${what}`);
      await until(
        async () => (await debian.run("tapedeck tail --after start --no-follow --json")).includes("build.succeeded"),
        { message: "a build to be recorded" },
      );
      const query = "select count(*) > 0 from tapedeck.build_times";
      await until(
        async () =>
          (await debian.run(`cd / && runuser -u postgres -- psql -d tapedeck -Atc '${query}'`)).trim() === "t",
        { message: "a build to be in the tables" },
      );
    });

    it("makes a token with the commands that the page has for the server itself", async () => {
      const [typed = ""] = (await installPage()).blocks.filter((block) => block.includes("cli.env"));
      expect(await debian.run(`cd /root\n${typed}`)).toContain("tdk_");
    });

    it("comes back from a backup with the commands that the page has, while it leaves NATS running", async () => {
      const page = await readFile(join(root, "docs/operations.md"), "utf8");
      const blocks = [...page.matchAll(/^```\n(.*?)^```/gms)].map(([, block = ""]) => block);
      const [typed = ""] = blocks.filter((block) => block.includes("systemctl stop tapedeck-gateway"));
      await debian.run(
        "systemctl stop recorder stand-in || true; systemctl show tapedeck-nats --property MainPID > /root/before",
      );
      const output = await debian.run(`mkdir -p /var/backups; cd /root\n${typed}`);
      expect(output).toContain("its log continues as epoch");
      await debian.run("systemctl show tapedeck-nats --property MainPID | diff - /root/before");
      await allActive();
      await until(() => debian.run("tapedeck-server check --ready").catch(() => undefined), {
        message: "the services to be ready",
      });
      expect(await debian.run("tapedeck tail --after start --no-follow --json")).toContain("build.succeeded");
      expect(await debian.run("ls /var/lib/tapedeck")).toContain("replaced");
      await debian.run("rm -r /var/lib/tapedeck");
    });

    it("does not start what its operator has disabled, also when it is installed again", async () => {
      const again = `dpkg --install /root/tapedeck_${version}_all.deb`;
      await debian.run(
        `systemctl stop tapedeck.target; systemctl disable tapedeck-query; ${again}; systemctl start tapedeck.target`,
      );
      await until(async () => (await debian.run("systemctl is-active tapedeck-gateway || true")).startsWith("active"), {
        message: "the gateway to start",
      });
      const states = "systemctl is-enabled tapedeck-query tapedeck-ingest; systemctl is-active tapedeck-query";
      expect(await debian.run(`${states} || true`)).toBe("disabled\nenabled\ninactive\n");
      await debian.run("systemctl enable --now tapedeck-query");
      await allActive();
    });

    it("lets the gateway listen on all addresses, as for a team", async () => {
      const dropIn = "/run/systemd/system/tapedeck-gateway.service.d/zz-open.conf";
      const open = "[Service]\\nEnvironment=TAPEDECK_GATEWAY_HTTP_HOST=0.0.0.0 TAPEDECK_INSECURE=true\\n";
      await debian.run(`mkdir -p "$(dirname ${dropIn})"; printf '${open}' > ${dropIn}`);
      await debian.run("systemctl daemon-reload; systemctl restart tapedeck-gateway");
      expect(await debian.run("cat /proc/net/tcp")).toMatch(/ 00000000:1B8C 00000000:0000 0A /);
      await debian.run(`rm ${dropIn}; systemctl daemon-reload; systemctl restart tapedeck-gateway`);
      await allActive();
    });

    it("serves TLS with the certificate that its settings name", async () => {
      const { certFile, keyFile } = await testCertificate(join(debian.root, "etc/tapedeck"));
      await Promise.all([chmod(certFile, 0o644), chmod(keyFile, 0o644)]);
      const inside = (file: string) => `/${relative(debian.root, file)}`;
      const dropIn = "/run/systemd/system/tapedeck-gateway.service.d/zz-tls.conf";
      const settings = `TAPEDECK_TLS_CERT=${inside(certFile)} TAPEDECK_TLS_KEY=${inside(keyFile)}`;
      await debian.run(`mkdir -p "$(dirname ${dropIn})"; printf '[Service]\\nEnvironment=${settings}\\n' > ${dropIn}`);
      await debian.run("systemctl daemon-reload; systemctl restart tapedeck-gateway");
      await allActive();
      const tail = "tapedeck tail --after start --no-follow --json --url https://localhost:7052";
      expect(await debian.run(`NODE_EXTRA_CA_CERTS=${inside(certFile)} ${tail}`)).toContain("build.succeeded");
      await debian.run(`rm ${dropIn}; systemctl daemon-reload; systemctl restart tapedeck-gateway`);
      await allActive();
    });

    it("has systemd start a service again that hangs", async () => {
      const restarts = async () => Promise.all(services.map((unit) => show(unit, "NRestarts")));
      const dropIns = services.map((unit) => `/run/systemd/system/${unit}.service.d`);
      await debian.run(
        dropIns
          .map((folder) => `mkdir -p ${folder}; printf '[Service]\\nWatchdogSec=10\\n' > ${folder}/zz-test.conf`)
          .join("\n"),
      );
      await debian.run(`systemctl daemon-reload; systemctl restart ${services.join(" ")}`);
      expect(await restarts()).toEqual(["0", "0", "0"]);
      for (const unit of services) await debian.run(`kill -STOP ${await show(unit, "MainPID")}`);
      await until(async () => (await restarts()).every((count) => count !== "0"), {
        message: "systemd to start them again",
      });
      await allActive();
      for (const unit of services) {
        expect(await debian.run(`journalctl --unit ${unit} --output cat`)).toContain("Failed with result 'watchdog'");
      }
      const tail = await debian.run("tapedeck tail --after start --no-follow --json");
      expect(tail).toContain("build.succeeded");
    });

    it("goes with all of its units when it is purged, and leaves the database", async () => {
      await debian.run("DEBIAN_FRONTEND=noninteractive apt-get purge --yes tapedeck");
      expect(await debian.run("systemctl list-units --all --plain --no-legend 'tapedeck*'")).toBe("");
      expect(await debian.run("ls -d /etc/tapedeck /var/lib/tapedeck* /var/lib/private/tapedeck* || true")).toBe("");
      expect(await debian.run("cd / && runuser -u postgres -- psql -Atl")).toContain("tapedeck|");
    });
  },
);
