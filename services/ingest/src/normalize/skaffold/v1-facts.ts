import type {
  BuildEvent,
  DebuggingContainerEvent,
  FileSyncEvent,
  PortEvent,
  ResourceStatusCheckEvent,
} from "@tapedeck/proto/skaffold/v1/skaffold";
import type { Event, OperationRef } from "@tapedeck/proto/tapedeck/v1/event";
import type { Fact } from "../fact.ts";
import { canceled, failed, failure, firstLine, message, name, succeeded, summary } from "../facts.ts";
import { errorOf } from "./facts.ts";

// Each function gives the fact of one event of v1; undefined for an unknown status.

/** `endedBecauseOf` gives the artifact whose failed build made Skaffold end this one. */
export function build(
  event: BuildEvent,
  own: OperationRef,
  endedBecauseOf: (error: Event["error"]) => string | undefined,
): Fact | undefined {
  const subject = name(event.artifact);
  const rest = {
    subject,
    operation: own,
    detail: {
      $case: "build",
      value: {
        artifact: subject,
        host_platform: name(event.hostPlatform),
        target_platforms: name(event.targetPlatforms),
        cache_hit: false,
      },
    },
  } as const;
  const error = errorOf(event.actionableErr, event.err, event.errCode);
  switch (event.status) {
    case "In Progress":
      return { kind: "build.started", summary: summary(`build of ${subject} started`), ...rest };
    case "Complete":
      return { kind: "build.succeeded", ...succeeded, summary: summary(`${subject} built`), ...rest };
    case "Failed":
    case "Canceled": {
      const cause = endedBecauseOf(error);
      if (cause === undefined && event.status === "Failed") {
        return { kind: "build.failed", ...failed(error), summary: failure(`build of ${subject}`, error), ...rest };
      }
      const because = cause === undefined ? "" : ` because that of ${cause} failed`;
      return {
        kind: "build.canceled",
        ...canceled,
        ...(error && { error }),
        summary: summary(`build of ${subject} canceled${because}`),
        ...rest,
      };
    }
    default:
      return undefined;
  }
}

const phaseTexts = {
  test: { what: "tests", done: "tests passed" },
  deploy: { what: "deploy", done: "deployed" },
  check: { what: "status check", done: "status check succeeded" },
} as const;

export function phase(
  noun: keyof typeof phaseTexts,
  status: string,
  error: Event["error"],
  own: OperationRef,
): Fact | undefined {
  const { what, done } = phaseTexts[noun];
  const rest = {
    operation: own,
    detail: { $case: "phase", value: { name: noun, task_id: "", status: name(status) } },
  } as const;
  switch (status) {
    // Only a status check starts with "Started"; its "In Progress" adds nothing.
    case noun === "check" ? "Started" : "In Progress":
      return { kind: `${noun}.started`, summary: `${what} started`, ...rest };
    case noun === "check" ? "Succeeded" : "Complete":
      return { kind: `${noun}.succeeded`, ...succeeded, summary: done, ...rest };
    case "Failed":
      return { kind: `${noun}.failed`, ...failed(error), summary: failure(what, error), ...rest };
    case "Canceled":
      return noun === "check"
        ? undefined
        : { kind: `${noun}.canceled`, ...canceled, summary: `${what} canceled`, ...rest };
    default:
      return undefined;
  }
}

export function resource(event: ResourceStatusCheckEvent, check: OperationRef): Fact | undefined {
  const subject = name(event.resource);
  const line = firstLine(event.message);
  const rest = {
    subject,
    operation: check,
    detail: {
      $case: "resource",
      value: { resource: subject, status: name(event.status), message: message(event.message), url: "" },
    },
  } as const;
  switch (event.status) {
    case "In Progress":
      return { kind: "resource.pending", summary: summary(`${subject} is pending${line && `: ${line}`}`), ...rest };
    case "Succeeded":
      return { kind: "resource.ready", ...succeeded, summary: summary(`${subject} is ready`), ...rest };
    case "Failed": {
      const error = errorOf(event.actionableErr, event.err, event.statusCode);
      return { kind: "resource.failed", ...failed(error), summary: failure(subject, error), ...rest };
    }
    default:
      return undefined;
  }
}

export function sync(event: FileSyncEvent, own: OperationRef): Fact | undefined {
  const files = event.fileCount === 1 ? "1 file" : `${event.fileCount} files`;
  const rest = {
    subject: own.subject,
    operation: own,
    detail: { $case: "sync", value: { image: name(event.image), file_count: event.fileCount } },
  } as const;
  switch (event.status) {
    case "In Progress":
      return { kind: "sync.started", summary: summary(`sync of ${files} to ${own.subject} started`), ...rest };
    case "Succeeded":
      return { kind: "sync.succeeded", ...succeeded, summary: summary(`${files} synced to ${own.subject}`), ...rest };
    case "Failed": {
      const error = errorOf(event.actionableErr, event.err, event.errCode);
      return {
        kind: "sync.failed",
        ...failed(error),
        summary: failure(`sync of ${files} to ${own.subject}`, error),
        ...rest,
      };
    }
    default:
      return undefined;
  }
}

export function port(event: PortEvent): Fact {
  const resourceName = [event.resourceType, event.resourceName].filter(Boolean).join("/");
  const subject = name(resourceName || event.podName);
  const address = `${event.address || "127.0.0.1"}:${event.localPort}`;
  return {
    kind: "port.forwarded",
    subject,
    summary: summary(`${subject || "a port"} forwarded to ${address}`),
    detail: {
      $case: "port",
      value: {
        local_port: event.localPort,
        remote_port: event.remotePort,
        resource_type: name(event.resourceType),
        resource_name: name(event.resourceName),
        namespace: name(event.namespace),
        pod: name(event.podName),
        container: name(event.containerName),
        address: name(event.address),
        port_name: name(event.portName),
      },
    },
  };
}

export function debug(event: DebuggingContainerEvent): Fact | undefined {
  const subject = name(event.containerName);
  const place = `${event.podName}/${event.containerName}`;
  const rest = {
    subject,
    detail: {
      $case: "debug",
      value: {
        pod: name(event.podName),
        container: subject,
        namespace: name(event.namespace),
        artifact: name(event.artifact),
        runtime: name(event.runtime),
        ports: Object.fromEntries(
          Object.entries(event.debugPorts)
            .slice(0, 100)
            .map(([key, value]) => [name(key), value]),
        ),
      },
    },
  } as const;
  switch (event.status) {
    case "Started":
      return { kind: "debugger.attached", summary: summary(`debugger can attach to ${place}`), ...rest };
    case "Terminated":
      return { kind: "debugger.detached", summary: summary(`debugger lost ${place}`), ...rest };
    default:
      return undefined;
  }
}

/** "gcr.io:443/p/web:tag@sha256:…" → "gcr.io:443/p/web": the tag differs with every build. */
export function imageName(image: string): string {
  const untagged = /^([^@]*\/)?([^@:/]*)/.exec(image)?.[0];
  return untagged || image;
}
