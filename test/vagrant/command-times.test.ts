import { commandResult, type Shop, setUpShop, upJob } from "@tapedeck/fakes/vagrant/shop";
import {
  Component_Type,
  Job,
  Job_State,
  Operation_PhysicalState,
  Target_Machine,
} from "@tapedeck/proto/vagrant/vagrant";
import { expect, it } from "vitest";
import { ask } from "../rkt/tables.ts";
import { startVagrantStack, type VagrantStack } from "./stack.ts";
import { commandTimes } from "./tables.ts";

type Machine = { readonly name: string; readonly provider: string; readonly box: string; readonly version: string };

/** What the Vagrantfile of a project says. */
const web1: Machine = { name: "web1", provider: "virtualbox", box: "hashicorp/bionic64", version: "1.0.282" };
const web2: Machine = { name: "web2", provider: "virtualbox", box: "hashicorp/bionic64", version: "1.0.282" };
const db1: Machine = { name: "db1", provider: "libvirt", box: "debian/bookworm64", version: "12.20250126.1" };

/** The commands in their order: when the runner began each and when it was over, in seconds of the server's clock. */
const commands: readonly Command[] = [
  { command: "up", machine: web1, from: 10, to: 52.25, exit: 0 },
  { command: "up", machine: web2, from: 60, to: 97.5, exit: 0 },
  { command: "up", machine: db1, from: 100, to: 188.004, exit: 1 },
  { command: "reload", machine: web1, from: 200, to: 231.75, exit: 0 },
  { command: "provision", machine: db1, from: 240, to: 252.5, exit: 0 },
  { command: "halt", from: 260, to: 266.1, exit: 0 },
];

type Command = Readonly<{ command: string; machine?: Machine; from: number; to: number; exit: number }>;

/** By hand, from the two lists above. */
const labelled = [
  row(web1, ["up", "42250", "succeeded", 0]),
  row(web2, ["up", "37500", "succeeded", 0]),
  row(db1, ["up", "88004", "failed", 1]),
  row(web1, ["reload", "31750", "succeeded", 0]),
  row(db1, ["provision", "12500", "succeeded", 0]),
  row(undefined, ["halt", "6100", "succeeded", 0]),
];

/** `halt` was for the whole project. */
const labelledByMachine = [
  { machine: "db1", box: "debian/bookworm64", provider: "libvirt", commands: 2, failed: 1, ms: 100_504 },
  { machine: "web1", box: "hashicorp/bionic64", provider: "virtualbox", commands: 2, failed: 0, ms: 74_000 },
  { machine: "web2", box: "hashicorp/bionic64", provider: "virtualbox", commands: 1, failed: 0, ms: 37_500 },
  { machine: null, box: null, provider: null, commands: 1, failed: 0, ms: 6_100 },
];

const labelledByBox = [
  { box: "debian/bookworm64", box_version: "12.20250126.1", machines: 1, commands: 2, longest: 88_004 },
  { box: "hashicorp/bionic64", box_version: "1.0.282", machines: 2, commands: 3, longest: 42_250 },
  { box: null, box_version: null, machines: 0, commands: 1, longest: 6_100 },
];

it("each command has its machine and box, and they are counted by machine and by box", async () => {
  let seconds = 0;
  await using on = await startVagrantStack({ now: () => Date.UTC(2026, 10, 20, 9) + seconds * 1_000 });
  const shop = setUpShop(on.fake);
  const ids = new Map([web1, web2, db1].map((machine) => [machine, registered(shop, machine)]));
  for (const one of commands) {
    seconds = one.from - 1;
    const id = one.machine && ids.get(one.machine);
    await run(on, shop, one, { id, passTo: (time) => (seconds = time) });
  }
  await on.stack.drained();
  await on.stack.caughtUp();
  const { database } = on.stack;
  expect(await commandTimes(database)).toEqual(labelled);
  expect(
    await ask(
      database,
      `select machine, box, provider, count(*)::int as commands, sum(duration_ms)::int as ms,
         (count(*) filter (where outcome = 'failed'))::int as failed
       from tapedeck.vagrant_command_times group by 1, 2, 3 order by 1`,
    ),
  ).toEqual(labelledByMachine);
  expect(
    await ask(
      database,
      `select box, box_version, count(distinct machine)::int as machines, count(*)::int as commands,
         max(duration_ms)::int as longest
       from tapedeck.vagrant_command_times group by 1, 2 order by 1`,
    ),
  ).toEqual(labelledByBox);
});

/** Registers a machine whose provider has made it. */
function registered({ target }: Shop, { name, provider, box, version }: Machine): string {
  const machine = { id: `vm-${name}`, state: { id: "running" }, box: { name: box, version, provider } };
  const value = Buffer.from(Target_Machine.encode(Target_Machine.fromPartial(machine)).finish());
  const record = { type_url: "type.googleapis.com/hashicorp.vagrant.Target.Machine", value };
  return target({ name, provider, state: Operation_PhysicalState.CREATED, record });
}

type Turn = { readonly id: string | undefined; readonly passTo: (seconds: number) => void };

async function run(on: VagrantStack, shop: Shop, { command, from, to, exit }: Command, { id, passTo }: Turn) {
  const about = id === undefined ? {} : { scope: { $case: "target" as const, value: { resource_id: id } } };
  const operation = {
    $case: "command" as const,
    value: { command, component: { type: Component_Type.COMMAND, name: command } },
  };
  const job = shop.queue(Job.fromPartial({ ...upJob(shop), ...about, operation }));
  await on.waitForState(job, Job_State.QUEUED);
  on.fake.jobs.assign(job);
  passTo(from);
  on.fake.jobs.ack(job);
  passTo(to);
  on.fake.jobs.complete(job, commandResult({ run_result: exit === 0, exit_code: exit }));
  await on.waitForState(job, Job_State.SUCCESS);
}

function row(
  machine: Machine | undefined,
  [command, duration_ms, outcome, exit_code]: readonly [string, string, string, number],
) {
  const { name = null, provider = null, box = null, version = null } = machine ?? {};
  return {
    command,
    machine: name,
    provider,
    box,
    box_version: version,
    duration_ms,
    outcome,
    exit_code,
    error_code: exit_code === 0 ? "" : String(exit_code),
    vagrant_version: "2.3.7",
  };
}
