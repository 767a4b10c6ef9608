import type { PlantedCause } from "./planted-cause.ts";
import { type Recording, recording } from "./recording.ts";
import { type MachineState, type VagrantSetup, vagrantCommand } from "./vagrant-command.ts";

// Causes that break machines.

const alice = { user: "alice", host: "alice-desktop" };
const bob = { user: "bob", host: "bob-laptop" };
const main = { branch: "main", commit: "5c1d20e8a4f94d6c8c1b1f7b5f3f2f5e0a9d7c11", dirty: "false" };
const later = { branch: "main", commit: "a97be03c41d2478f9d0f5a3e6b1c8d7f42e6a805", dirty: "false" };
const base = { name: "acme/base", version: "3.2.0" };
const nonZero =
  "The SSH command responded with a non-zero exit status. Vagrant\nassumes that this means the command failed. The output for this command\nshould be in the log above. Please read the output to determine what\nwent wrong.";
const off: Readonly<Record<string, MachineState>> = { web: "NOT_CREATED", db: "NOT_CREATED" };

type Command = ReturnType<typeof vagrantCommand>;

function side(of: Recording, setup: Partial<VagrantSetup> & Pick<VagrantSetup, "labels">): Command {
  return vagrantCommand(of, { command: "up", boxes: [base], machines: off, ...setup });
}

function booted(command: Command, machine: string, { box = base.name, port = 2_222 } = {}): void {
  command.print(
    [
      `==> ${machine}: Importing base box '${box}'...`,
      `==> ${machine}: Matching MAC address for NAT networking...`,
      `==> ${machine}: Booting VM...`,
      `==> ${machine}: Waiting for machine to boot. This may take a few minutes...`,
      `    ${machine}: SSH address: 127.0.0.1:${port}`,
    ],
    "info-bold",
  );
  command.machine(machine, "CREATED");
  command.print([`==> ${machine}: Machine booted and ready!`, `==> ${machine}: Running provisioner: shell...`]);
}

/** A `vagrant up` of both machines. */
function goodUp(of: Recording, setup: Partial<VagrantSetup> & Pick<VagrantSetup, "labels">): void {
  const command = side(of, setup);
  command.print(["Bringing machine 'web' up with 'virtualbox' provider..."], "info-bold");
  booted(command, "db");
  command.print(["    db: database shop is ready"]);
  booted(command, "web", { port: 2_200 });
  command.print(["    web: installed 41 packages", "    web: service shop started"]);
  command.succeeded();
}

function sources(project: string, developers: readonly string[]): Recording[] {
  return developers.map((developer) => recording(developer, project, "vagrant"));
}

function together(name: string, [left, right]: readonly Recording[], cause: PlantedCause["cause"]): PlantedCause {
  if (left === undefined) throw new Error("no failing side");
  const events = [...(right?.events ?? []), ...left.events];
  return { name, left: left.source, ...(right && { right: right.source }), events, cause };
}

function newBox(): PlantedCause {
  const [bobs, alices] = sources("new-box", ["bob", "alice"]) as [Recording, Recording];
  goodUp(alices, {
    labels: { ...alice, ...main },
    boxes: [base, { name: "bento/ubuntu-22.04", version: "202401.31.0" }],
  });
  const boxes = [
    { name: "generic/alpine318", version: "4.3.12" },
    { ...base, version: "4.0.0" },
  ];
  const command = side(bobs, { labels: { ...bob, ...later }, boxes });
  booted(command, "db");
  command.print(["    db: database shop is ready"]);
  booted(command, "web", { port: 2_200 });
  command.print(["    web: Running: /tmp/vagrant-shell20261120-1-x1y2z3.sh"]);
  command.print(
    ["    web: error: externally-managed-environment", "    web: × This environment is externally managed"],
    "error",
  );
  command.raised(nonZero);
  return together("a newer box, in which pip refuses to install", [bobs, alices], {
    kinds: ["configuration", "version"],
    text: /4\.0\.0/,
  });
}

function otherProvider(): PlantedCause {
  const [bobs, alices] = sources("provider", ["bob", "alice"]) as [Recording, Recording];
  goodUp(alices, { labels: { ...alice, ...main } });
  const command = side(bobs, {
    labels: { ...bob, ...later, branch: "docs/readme" },
    flags: { provider: "libvirt" },
    provider: "",
    boxes: [base, { name: "bento/ubuntu-22.04", version: "202401.31.0" }],
  });
  command.raised(
    "The provider 'libvirt' could not be found, but was requested to\nback the machine 'db'. Please use a provider that exists.\n\nVagrant knows about the following providers: docker, hyperv, virtualbox",
  );
  return together("a provider was asked for that is not installed", [bobs, alices], {
    kinds: ["command", "configuration"],
    text: /libvirt/,
  });
}

function missingPlugin(): PlantedCause {
  const [bobs, alices] = sources("plugin", ["bob", "alice"]) as [Recording, Recording];
  goodUp(alices, { labels: { ...alice, ...main } });
  const command = side(bobs, { labels: { ...bob, ...later }, boxes: [] });
  command.raised(
    "There are errors in the configuration of this machine. Please fix\nthe following errors and try again:\n\nVagrant:\n* Unknown configuration section 'hostmanager'.",
  );
  return together("a plugin that the Vagrantfile needs is not installed", [bobs, alices], {
    kinds: ["failure"],
    text: /hostmanager/,
  });
}

function upgradedVagrant(): PlantedCause {
  const [alices] = sources("upgrade", ["alice"]) as [Recording];
  goodUp(alices, { labels: { ...alice, ...main } });
  const command = side(alices, {
    labels: { ...alice, ...later },
    version: "2.4.1",
    boxes: [base, { name: "bento/ubuntu-22.04", version: "202401.31.0" }],
    machines: { web: "CREATED", db: "CREATED", mail: "NOT_CREATED" },
  });
  command.print(["Bringing machine 'web' up with 'virtualbox' provider..."], "info-bold");
  command.raised("undefined method `exists?' for class File\n\nDid you mean?  exist?");
  return together("Vagrant was upgraded, and a plugin does not work with its Ruby", [alices], { kinds: ["version"] });
}

function portCollision(): PlantedCause {
  const [alices] = sources("collision", ["alice"]) as [Recording];
  goodUp(alices, { labels: { ...alice, ...main } });
  const command = side(alices, {
    labels: { ...alice, ...later, branch: "feature/search", dirty: "true" },
    machines: { web: "DESTROYED", db: "CREATED" },
    boxes: [base, { name: "bento/ubuntu-22.04", version: "202401.31.0" }],
  });
  command.print(["==> web: Clearing any previously set forwarded ports..."], "info-bold");
  command.raised(
    "Vagrant cannot forward the specified ports on this VM, since they\nwould collide with some other application that is already listening\non these ports. The forwarded port to 8080 is already in use\non the host machine.\n\nTo fix this, modify your current project's Vagrantfile to use another\nport.",
  );
  return together("another program has the port that is to be forwarded", [alices], {
    kinds: ["failure"],
    text: /8080|collide/,
  });
}

function databaseOff(): PlantedCause {
  const [alices] = sources("database", ["alice"]) as [Recording];
  const args = ["web"];
  const on = { web: "CREATED", db: "CREATED" } as const;
  const good = side(alices, { labels: { ...alice, ...main }, command: "provision", args, machines: on });
  good.print(["==> web: Running provisioner: shell...", "    web: migrated to 41"]);
  good.succeeded();
  const command = side(alices, {
    labels: { ...alice, ...later, dirty: "true" },
    command: "provision",
    args,
    machines: { web: "CREATED", db: "DESTROYED" },
  });
  command.print(["==> web: Running provisioner: shell..."], "info-bold");
  command.print(
    ['    web: psql: error: connection to server at "192.168.56.11", port 5432 failed: No route to host'],
    "error",
  );
  command.raised(nonZero);
  return together("the machine with the database is powered off", [alices], { kinds: ["resource"], subject: /db/ });
}

function missingBox(): PlantedCause {
  const [bobs, alices] = sources("missing-box", ["bob", "alice"]) as [Recording, Recording];
  goodUp(alices, { labels: { ...alice, ...main }, boxes: [base, { name: "generic/alpine318", version: "4.3.12" }] });
  const command = side(bobs, {
    labels: { ...bob, ...later },
    boxes: [{ name: "bento/ubuntu-22.04", version: "202401.31.0" }],
  });
  command.print(["==> db: Box 'acme/base' could not be found. Attempting to find and install..."], "info-bold");
  command.print(["    db: Box Provider: virtualbox", "    db: Box Version: >= 0"]);
  command.raised(
    "The box 'acme/base' could not be found or\ncould not be accessed in the remote catalog. If this is a private\nbox on HashiCorp's Vagrant Cloud, please verify you're logged in via\n`vagrant login`. Also, please double-check the name.",
  );
  return together("a private box can't be downloaded", [bobs, alices], {
    kinds: ["failure", "configuration"],
    text: /acme\/base/,
  });
}

export const vagrantCauses: readonly PlantedCause[] = [
  newBox(),
  otherProvider(),
  missingPlugin(),
  upgradedVagrant(),
  portCollision(),
  databaseOff(),
  missingBox(),
];

function noNetwork(): PlantedCause {
  const [bobs, alices] = sources("apt", ["bob", "alice"]) as [Recording, Recording];
  goodUp(alices, { labels: { ...alice, ...main } });
  const command = side(bobs, { labels: { ...bob, ...later }, boxes: [{ ...base, version: "3.2.1" }] });
  booted(command, "db");
  command.print(
    [
      "    db: Err:1 http://archive.ubuntu.com/ubuntu focal InRelease",
      "    db:   Could not resolve 'archive.ubuntu.com'",
      "    db: E: Failed to fetch http://archive.ubuntu.com/ubuntu/dists/focal/InRelease  Could not resolve 'archive.ubuntu.com'",
    ],
    "error",
  );
  command.raised(nonZero);
  return together("a machine can't reach the archive of its packages", [bobs, alices], {
    kinds: ["failure"],
    text: /archive\.ubuntu\.com/,
  });
}

function bootTimeout(): PlantedCause {
  const [alices] = sources("boot", ["alice"]) as [Recording];
  goodUp(alices, { labels: { ...alice, ...main } });
  const command = side(alices, {
    labels: { ...alice, ...later, dirty: "true" },
    boxes: [base, { name: "bento/ubuntu-22.04", version: "202401.31.0" }],
  });
  command.print(["==> db: Booting VM...", "==> db: Waiting for machine to boot. This may take a few minutes..."]);
  command.machine("db", "CREATED");
  command.raised(
    'Timed out while waiting for the machine to boot. This means that\nVagrant was unable to communicate with the guest machine within\nthe configured ("config.vm.boot_timeout" value) time period.',
  );
  return together("a machine does not boot, and the next is not created", [alices], {
    kinds: ["failure"],
    text: /Timed out/,
  });
}

function noGuestAdditions(): PlantedCause {
  const [bobs, alices] = sources("vboxsf", ["bob", "alice"]) as [Recording, Recording];
  goodUp(alices, { labels: { ...alice, ...main }, version: "2.4.0" });
  const command = side(bobs, {
    labels: { ...bob, ...later },
    boxes: [{ ...base, version: "3.3.0" }],
    version: "2.4.1",
  });
  booted(command, "db");
  command.raised(
    "Vagrant was unable to mount VirtualBox shared folders. This is usually\nbecause the filesystem \"vboxsf\" is not available. This filesystem is\nmade available via the VirtualBox Guest Additions and kernel module.\n\nmount: /vagrant: unknown filesystem type 'vboxsf'.",
  );
  return together("a newer box lacks the guest additions", [bobs, alices], {
    kinds: ["configuration"],
    subject: /acme\/base/,
  });
}

function oneMachine(): PlantedCause {
  const [bobs, alices] = sources("one-machine", ["bob", "alice"]) as [Recording, Recording];
  goodUp(alices, { labels: { ...alice, ...main } });
  const command = side(bobs, { labels: { ...bob, ...later }, args: ["web"] });
  booted(command, "web", { port: 2_200 });
  command.print(["    web: could not connect to server: No route to host (192.168.56.11)"], "error");
  command.raised(nonZero);
  return together("only one machine was brought up, and it needs the other", [bobs, alices], {
    kinds: ["command", "resource"],
    text: /up web|\bdb\b/,
  });
}

function updatedBox(): PlantedCause {
  const [alices] = sources("updated-box", ["alice"]) as [Recording];
  goodUp(alices, { labels: { ...alice, ...main } });
  const command = side(alices, { labels: { ...alice, ...later }, boxes: [base, { ...base, version: "4.0.0" }] });
  booted(command, "db");
  command.print(["    db: E: Unable to locate package postgresql-12"], "error");
  command.raised(nonZero);
  return together("the box was updated, and has other packages", [alices], {
    kinds: ["configuration"],
    text: /4\.0\.0/,
  });
}

function partOfProvisioning(): PlantedCause {
  const [alices] = sources("part", ["alice"]) as [Recording];
  const on = { web: "CREATED", db: "CREATED" } as const;
  const good = side(alices, { labels: { ...alice, ...main }, command: "provision", machines: on });
  good.print(["==> web: Running provisioner: node (shell)...", "==> web: Running provisioner: app (shell)..."]);
  good.succeeded();
  const command = side(alices, {
    labels: { ...alice, ...later },
    command: "provision",
    flags: { "provision-with": "app" },
    machines: on,
  });
  command.print(["==> web: Running provisioner: app (shell)..."], "info-bold");
  command.print(["    web: /tmp/vagrant-shell: line 3: npm: command not found"], "error");
  command.raised(nonZero);
  return together("only a part of the provisioners was run", [alices], { kinds: ["command"], text: /provision-with/ });
}

function noVirtualization(): PlantedCause {
  const [bobs, alices] = sources("vtx", ["bob", "alice"]) as [Recording, Recording];
  goodUp(alices, { labels: { ...alice, ...main } });
  const boxes = [
    { name: "bento/ubuntu-22.04", version: "202401.31.0" },
    { ...base, version: "3.2.1" },
  ];
  const command = side(bobs, { labels: { ...bob, ...later }, boxes, version: "2.4.1" });
  command.print(["==> db: Importing base box 'acme/base'...", "==> db: Booting VM..."], "info-bold");
  command.raised(
    'There was an error while executing `VBoxManage`, a CLI used by Vagrant\nfor controlling VirtualBox. The command and stderr is shown below.\n\nCommand: ["startvm", "4f1d0c30-8a52", "--type", "headless"]\n\nStderr: VBoxManage: error: VT-x is not available (VERR_VMX_NO_VMX)',
  );
  return together("a machine without virtualization", [bobs, alices], { kinds: ["failure"], text: /VT-x/ });
}

/** The second and the third set: written after the ranking had been read and corrected, and so not blind. */
export const laterVagrantCauses: readonly PlantedCause[] = [
  noNetwork(),
  bootTimeout(),
  noGuestAdditions(),
  oneMachine(),
  updatedBox(),
  partOfProvisioning(),
  noVirtualization(),
];
