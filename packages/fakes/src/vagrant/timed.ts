import {
  Component_Type,
  Job,
  Job_Result,
  Operation_PhysicalState,
  QueueJobRequest,
  Target,
  type GetJobStreamResponse_Terminal_Event as TerminalEvent,
  UpsertBoxRequest,
  UpsertTargetRequest,
} from "@tapedeck/proto/vagrant/vagrant";
import { delay } from "@tapedeck/shared/sync/delay";
import type { Playback } from "./playback.ts";
import type { RecordedUpstream } from "./recording.ts";
import type { FakeVagrant } from "./server.ts";
import { type RecordedStep, type StepContent, stepsOf } from "./steps.ts";

/** What the demo's project does: its provisioner is mended or not. */
export type RunKind = "succeeding" | "failing";

export type DemoOptions = {
  readonly recording: RecordedUpstream;
  /** Times as fast as recorded. Below 1 for people: the recording's times are compressed. */
  readonly speed: number;
  /** Real ms before the first run and after each. */
  readonly pauseMs: number;
  readonly signal: AbortSignal;
};

export type TimedRuns = {
  /** Nothing happens from now on, and after `resume` what comes next as if no time had passed. */
  readonly pause: () => void;
  readonly resume: () => void;
  /** Runs that are over, destroying included. */
  readonly runs: () => number;
  /** Resolves with the signal. */
  readonly ended: Promise<void>;
};

/**
 * `vagrant up` whose provisioner fails, `vagrant destroy`, `vagrant up` that succeeds, `vagrant destroy`, without an end: who
 * looks for what fails need not wait. One project, with jobs, targets and runners of each run's own.
 */
export function startDemo(fake: FakeVagrant, { recording, speed, pauseMs, signal }: DemoOptions): TimedRuns {
  let runs = 0;
  let isPaused = false;
  let current: { readonly playback: Playback; release?: () => void } | undefined;

  async function play(steps: readonly RecordedStep[], names: Map<string, string>): Promise<void> {
    const playback = fake.playAsNow(steps, names);
    current = { playback };
    if (isPaused) hold();
    await playback.run({ speed, signal });
  }

  function hold(): void {
    if (current !== undefined) current.release ??= current.playback.hold(0);
  }

  async function turns(): Promise<void> {
    const destroying = destroySteps(recording);
    await delay(pauseMs, signal);
    await play(boxSteps(), new Map());
    for (let turn = 0; !signal.aborted; turn++) {
      const names = newNames(fake, recording);
      await play(runSteps(recording, turn % 2 === 0 ? "failing" : "succeeding"), names);
      await delay(pauseMs, signal);
      await play(destroying, names);
      if (signal.aborted) return;
      fake.scrub();
      runs++;
      await delay(pauseMs, signal);
    }
  }

  return {
    pause() {
      isPaused = true;
      hold();
    },
    resume() {
      isPaused = false;
      current?.release?.();
      delete current?.release;
    },
    runs: () => runs,
    ended: turns(),
  };
}

/** Names for one run: a runner of its own. */
export function newNames(fake: Pick<FakeVagrant, "newId">, recording: RecordedUpstream): Map<string, string> {
  const runners = stepsOf(recording).flatMap((step) => (step.kind === "runner" ? [step.runner.id] : []));
  return new Map(runners.map((id) => [id, fake.newId()]));
}

/** The recorded run, whose provisioner fails, or as it would be if it did not. */
export function runSteps(recording: RecordedUpstream, kind: RunKind): RecordedStep[] {
  const steps = stepsOf(recording);
  if (kind === "failing") return steps;
  return steps.map((step) => {
    if (step.kind === "write") return { ...step, events: step.events.map(mended) };
    if (step.kind !== "complete" || step.result?.run === undefined) return step;
    const run = { ...step.result.run, run_result: true, run_error: undefined };
    return { ...step, result: { ...step.result, run } };
  });
}

function mended(event: TerminalEvent): TerminalEvent {
  if (event.event?.$case !== "line" || event.event.value.color !== "red") return event;
  const { msg } = event.event.value;
  const value = { ...event.event.value, msg: msg.replace(/E: .*/, "provisioned ok"), color: "green" };
  return { ...event, event: { $case: "line", value } };
}

/** What `vagrant box add` has brought to this server before; two versions of one, as on a real machine. */
function boxSteps(): RecordedStep[] {
  return ["202407.22.0", "202502.21.0"].map((version, n) => {
    const name = "bento/ubuntu-24.04";
    const directory = `/home/dana/.vagrant.d/boxes/bento-VAGRANTSLASH-ubuntu-24.04/${version}/virtualbox`;
    const box = { name, provider: "virtualbox", version, directory };
    const request = UpsertBoxRequest.encode(UpsertBoxRequest.fromPartial({ box })).finish();
    return { n, atMs: n, ...callStep("UpsertBox", request, "") } as RecordedStep;
  });
}

/** The machines of the recording are destroyed: half a second for each on its clock, as compressed as the rest. */
function destroySteps(recording: RecordedUpstream): RecordedStep[] {
  const steps = stepsOf(recording);
  const calls = steps.flatMap((step) => (step.kind === "call" ? [step] : []));
  const up = calls.findLast(({ rpc }) => rpc === "QueueJob");
  if (up?.about === undefined) return [];
  const { job = Job.fromPartial({}) } = QueueJobRequest.decode(up.request);
  const machines = new Map(
    calls.flatMap(({ rpc, about, request }) => {
      const { name } = (rpc === "UpsertTarget" && UpsertTargetRequest.decode(request).target) || {};
      return about === undefined || name === undefined ? [] : [[about, name] as const];
    }),
  );
  const id = "0".repeat(up.about.length);
  const made: RecordedStep[] = [];
  const add = (step: StepContent) => made.push({ n: made.length, atMs: made.length * 170, ...step } as RecordedStep);
  const at = { seconds: 0n, nanos: 0 };

  const value = { command: "destroy", component: { type: Component_Type.COMMAND, name: "destroy" } };
  const { operation } = Job.fromPartial({ operation: { $case: "command", value } });
  const request = { job: { ...job, operation }, expires_in: "30s" };
  add(callStep("QueueJob", QueueJobRequest.encode(request).finish(), id));
  add({ kind: "assign", job: id, at });
  add({ kind: "ack", job: id, at });
  for (const [resource_id, name] of machines) {
    add({ kind: "write", job: id, events: [info(`==> ${name}: Forcing shutdown of VM...`)] });
    add({ kind: "write", job: id, events: [info(`==> ${name}: Destroying VM and associated drives...`)] });
    const target = Target.fromPartial({ resource_id, name, state: Operation_PhysicalState.NOT_CREATED });
    add(callStep("UpsertTarget", UpsertTargetRequest.encode({ target }).finish(), resource_id));
  }
  add({ kind: "complete", job: id, at, result: Job_Result.fromPartial({ run: { run_result: true } }) });
  return made;
}

function callStep(rpc: string, request: Uint8Array, about: string): StepContent {
  return { kind: "call", rpc, request: Buffer.from(request), about, isRefused: false, lent: {} };
}

function info(msg: string): TerminalEvent {
  return { event: { $case: "line", value: { msg, style: "info", disable_new_line: false, color: "" } } };
}
