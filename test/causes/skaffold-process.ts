import { BuilderType, BuildType, ClusterType, DeployerType, StatusCode } from "@tapedeck/proto/skaffold/enums/enums";
import { type DeepPartial, LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { type DeepPartial as DeepPartialV2, Event as V2Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { Recording } from "./recording.ts";

type V1 = NonNullable<NonNullable<DeepPartial<LogEntry>["event"]>["event_type"]>;
type V2 = NonNullable<DeepPartialV2<V2Event>["event_type"]>;
type Code = Exclude<keyof typeof StatusCode, "UNRECOGNIZED">;

export type Artifact = {
  readonly name: string;
  readonly type?: Exclude<keyof typeof BuilderType, "UNRECOGNIZED">;
  readonly dockerfile?: string;
};

export type SkaffoldSetup = {
  readonly labels: Readonly<Record<string, string>>;
  readonly version?: string;
  readonly artifacts: readonly Artifact[];
  readonly deployers?: readonly { readonly type: keyof typeof DeployerType; readonly count: number }[];
  readonly cluster?: keyof typeof ClusterType;
  readonly buildType?: keyof typeof BuildType;
  /** The machine's platform; the default target of builds. */
  readonly platform?: string;
  readonly targets?: string;
};

type ActionableError = { readonly code: Code; readonly message: string; readonly suggestions?: readonly string[] };
/** `log`: lines that the step prints. */
type PhaseOptions = { readonly ms?: number; readonly log?: readonly string[]; readonly fails?: ActionableError };

/** A `skaffold dev` under `tapedeck run`: what it emits on v1, v2 and in its applications' logs. */
export function skaffoldProcess(recording: Recording, setup: SkaffoldSetup) {
  const { labels, version = "v2.14.2", platform = "linux/amd64", targets = platform } = setup;
  const session = recording.begin({ command: "skaffold dev", ...labels });
  let number = 0;
  let iteration = -1;
  const v1 = (event_type: V1) => {
    recording.pass(2);
    const timestamp = recording.now();
    const entry = LogEntry.fromPartial({ timestamp, event: { event_type } });
    session.frame("v1", LogEntry.encode(entry).finish());
    return timestamp;
  };
  const v2 = (event_type: V2, channel = "v2") => {
    recording.pass(1);
    const event = V2Event.fromPartial({ timestamp: recording.now(), event_type });
    session.frame(channel, V2Event.encode(event).finish());
  };
  const err = (error: ActionableError | undefined) =>
    error && {
      errCode: StatusCode[error.code],
      message: error.message,
      suggestions: (error.suggestions ?? []).map((action) => ({ action })),
    };
  const task = (name: string, status: string, error?: ActionableError) =>
    v2({
      $case: "taskEvent",
      value: { id: `${name}-${number}`, task: name, iteration: number, status, actionableErr: err(error) },
    });
  const checked = (resource: string, status: string) =>
    v2({
      $case: "statusCheckSubtaskEvent",
      value: { id: resource, task_id: `StatusCheck-${number}`, resource, status },
    });
  const print = (name: string, subtask_id: string, lines: readonly string[] = []) => {
    for (const line of lines) {
      v2({ $case: "skaffoldLogEvent", value: { task_id: `${name}-${number}`, subtask_id, message: `${line}\n` } });
    }
  };
  const meta = (artifacts: readonly Artifact[], runID: string) => {
    const { deployers = [{ type: "KUBECTL", count: 1 }], cluster = "GKE", buildType = "LOCAL" } = setup;
    const entry = `Starting Skaffold: &{Version:${version} ConfigVersion:skaffold/v4beta12 GitVersion: GitCommit:d76dbabc8f95 BuildDate:2025-03-19T00:00:00Z GoVersion:go1.23.5 Compiler:gc Platform:${platform} User:}`;
    const deploy = {
      deployers: deployers.map(({ type, count }) => ({ type: DeployerType[type], count })),
      cluster: ClusterType[cluster],
    };
    const types = Map.groupBy(artifacts, ({ type = "DOCKER" }) => type);
    const builders = [...types].map(([type, of]) => ({ type: BuilderType[type], count: of.length }));
    const type = BuildType[buildType];
    return {
      v1: { entry, metadata: { build: { numberOfArtifacts: artifacts.length, builders, type }, deploy } },
      v2: {
        entry,
        metadata: {
          build: {
            type,
            artifacts: artifacts.map(({ name, type: of = "DOCKER", dockerfile }) => ({
              name,
              type: BuilderType[of],
              context: name,
              dockerfile: dockerfile ?? (of === "DOCKER" ? "Dockerfile" : ""),
            })),
          },
          deploy,
          runID,
        },
      },
    };
  };
  let described = meta(setup.artifacts, "run-1");
  let isNew = true;
  v1({ $case: "metaEvent", value: described.v1 });
  v2({ $case: "metaEvent", value: described.v2 });

  const loopEnded = (error?: ActionableError) => {
    task("DevLoop", error ? "Failed" : "Succeeded", error);
    v1({ $case: "devLoopEvent", value: { iteration, status: error ? "Failed" : "Succeeded", err: err(error) } });
    // Until the next file is saved.
    recording.pass(90_000);
  };

  return {
    session: session.session,
    /** skaffold.yaml was edited: there is a new runner. */
    reconfigured(artifacts: readonly Artifact[]) {
      described = meta(artifacts, `run-${number + 2}`);
      iteration = -1;
      isNew = true;
      v1({ $case: "metaEvent", value: described.v1 });
      v2({ $case: "metaEvent", value: described.v2 });
    },
    /** `changed`: git's labels that differ from before. */
    loop(changed?: Readonly<Record<string, string>>) {
      number += 1;
      iteration += 1;
      const started = v1({ $case: "devLoopEvent", value: { iteration, status: "In Progress" } });
      if (changed) session.labelled(changed, started);
      task("DevLoop", "InProgress");
      if (isNew) v2({ $case: "metaEvent", value: described.v2 });
      isNew = false;
      task("Build", "InProgress");
    },
    cached(artifact: string) {
      const value = { id: artifact, task_id: `Build-${number}`, artifact, step: "Cache", status: "Succeeded" };
      v2({ $case: "buildSubtaskEvent", value: { ...value, hostPlatform: platform, targetPlatforms: targets } });
    },
    /** If it fails, so does the loop. */
    build(artifact: string, { ms = 8_000, log = [], fails }: PhaseOptions = {}) {
      const platforms = { hostPlatform: platform, targetPlatforms: targets };
      const value = { id: artifact, task_id: `Build-${number}`, artifact, step: "Build", ...platforms };
      v1({ $case: "buildEvent", value: { artifact, status: "In Progress", ...platforms } });
      v2({ $case: "buildSubtaskEvent", value: { ...value, status: "InProgress" } });
      print("Build", artifact, [`Building [${artifact}]...`, `Target platforms: [${targets}]`, ...log]);
      recording.pass(ms);
      const status = fails ? "Failed" : "Complete";
      v1({ $case: "buildEvent", value: { artifact, status, ...errorFields(fails), ...platforms } });
      v2({
        $case: "buildSubtaskEvent",
        value: { ...value, status: fails ? "Failed" : "Succeeded", actionableErr: err(fails) },
      });
      if (!fails) return print("Build", artifact, [`Build [${artifact}] succeeded`]);
      const message = `build [${artifact}] failed: ${fails.message}`;
      task("Build", "Failed", { ...fails, message });
      loopEnded({ ...fails, message });
    },
    built: () => task("Build", "Succeeded"),
    tests({ ms = 3_000, log = [], fails }: PhaseOptions = {}) {
      task("Test", "InProgress");
      v1({ $case: "TestEvent", value: { status: "In Progress" } });
      print("Test", "0", log);
      recording.pass(ms);
      v1({ $case: "TestEvent", value: { status: fails ? "Failed" : "Complete", actionableErr: err(fails) } });
      task("Test", fails ? "Failed" : "Succeeded", fails);
      if (fails) loopEnded(fails);
    },
    render({ ms = 400, log = [], fails }: PhaseOptions = {}) {
      task("Render", "InProgress");
      print("Render", "0", log);
      recording.pass(ms);
      task("Render", fails ? "Failed" : "Succeeded", fails);
      if (fails) loopEnded(fails);
    },
    deploy({ ms = 2_000, log = [], fails }: PhaseOptions = {}) {
      task("Deploy", "InProgress");
      v1({ $case: "deployEvent", value: { status: "In Progress" } });
      print("Deploy", "0", ["Starting deploy...", ...log]);
      recording.pass(ms);
      if (!fails) return;
      v1({ $case: "deployEvent", value: { status: "Failed", ...errorFields(fails) } });
      task("Deploy", "Failed", fails);
      loopEnded(fails);
    },
    /** The status check, which is a part of the deploy: the resources that become ready, and then the one that does not. */
    check(ready: readonly string[], failing?: PhaseOptions & { readonly resource: string; readonly pending?: string }) {
      v1({ $case: "statusCheckEvent", value: { status: "Started" } });
      print("Deploy", "0", ["Waiting for deployments to stabilize..."]);
      for (const resource of ready) {
        recording.pass(2_000);
        const value = { resource, status: "Succeeded", message: "Succeeded" };
        v1({
          $case: "resourceStatusCheckEvent",
          value: { ...value, statusCode: StatusCode.STATUSCHECK_SUCCESS },
        });
        checked(resource, "Succeeded");
        print("Deploy", resource, [` - ${resource} is ready.`]);
      }
      const fails = failing?.fails;
      if (failing === undefined || fails === undefined) {
        v1({ $case: "statusCheckEvent", value: { status: "Succeeded" } });
        v1({ $case: "deployEvent", value: { status: "Complete" } });
        return task("Deploy", "Succeeded");
      }
      const { resource, pending, log = [], ms = 6_000 } = failing;
      const about = { resource, statusCode: StatusCode[fails.code], actionableErr: err(fails) };
      if (pending) {
        checked(resource, "InProgress");
        v1({ $case: "resourceStatusCheckEvent", value: { resource, status: "In Progress", message: pending } });
      }
      recording.pass(ms);
      v1({ $case: "resourceStatusCheckEvent", value: { ...about, status: "Failed", err: fails.message } });
      checked(resource, "Failed");
      print("Deploy", resource, [` - ${resource}: ${fails.message}`, ...log, ` - ${resource} failed.`]);
      const failed = { ...fails, message: `1/${ready.length + 1} deployment(s) failed`, suggestions: [] };
      v1({ $case: "statusCheckEvent", value: { status: "Failed", ...errorFields(failed) } });
      const whole = { ...failed, code: "DEPLOY_UNKNOWN" } as const;
      v1({ $case: "deployEvent", value: { status: "Failed", ...errorFields(whole) } });
      task("Deploy", "Failed", whole);
      loopEnded(whole);
    },
    port(localPort: number, resourceName: string, remotePort = 8080) {
      const resource = { resourceType: "service", resourceName, namespace: "default", address: "127.0.0.1" };
      v1({ $case: "portEvent", value: { localPort, remotePort, targetPort: { intVal: remotePort }, ...resource } });
      v2({ $case: "portEvent", value: { localPort, targetPort: { intVal: remotePort }, ...resource } });
    },
    succeeded: () => loopEnded(),
    appLog(containerName: string, lines: readonly string[]) {
      const podName = `${containerName}-6c9f7d5b44-x2x9k`;
      for (const line of lines) {
        const value = { containerName, podName, prefix: `[${containerName}]`, message: `${line}\n` };
        v2({ $case: "applicationLogEvent", value }, "logs");
      }
    },
    ended: () => session.end(),
  };

  function errorFields(error: ActionableError | undefined) {
    return error && { err: error.message, errCode: StatusCode[error.code], actionableErr: err(error) };
  }
}
