import { type RelationComment, shared } from "./comment.ts";

const ofSession = shared("session", "source");

/** Parts of Skaffold's state: as its own API would answer now, or answered last in the session. */
export const skaffoldComments: Readonly<Record<string, RelationComment>> = {
  skaffold_artifacts: {
    about: "One row for each artifact of a session's Skaffold state.",
    columns: {
      ...ofSession,
      artifact: "Name of the artifact (image).",
      status: "Status of its build in Skaffold's words.",
    },
  },
  skaffold_phases: {
    about: "One row for each phase of a session's Skaffold state: build, deploy, sync …",
    columns: {
      ...ofSession,
      phase: "Name of the phase in Skaffold's state.",
      status: "Its status in Skaffold's words.",
      status_code: "Skaffold's status code; empty: none.",
      auto_trigger: "Whether a change triggers the phase by itself; null: Skaffold does not say.",
    },
  },
  skaffold_resources: {
    about: "One row for each Kubernetes resource in a session's status check.",
    columns: {
      ...ofSession,
      resource: "Name of the resource, with its kind.",
      status: "Its status in Skaffold's words.",
    },
  },
  skaffold_ports: {
    about: "One row for each forwarded port of a session's Skaffold state.",
    columns: {
      ...ofSession,
      local_port: "Port on the developer's machine.",
      remote_port: "Port in the cluster.",
      resource_type: "Kind of the Kubernetes resource: pod, service …",
      resource_name: "Name of the Kubernetes resource.",
      namespace: "Its Kubernetes namespace.",
      pod: "Pod of a container's port; otherwise empty.",
      container: "Container of the port; otherwise empty.",
      port_name: "Name of the port; may be empty.",
      address: "Address on the developer's machine to which it is bound.",
    },
  },
  skaffold_debug_containers: {
    about: "One row for each container that skaffold debug prepared in a session.",
    columns: {
      ...ofSession,
      place: "Its place in Skaffold's list, from 0.",
      namespace: "Its Kubernetes namespace.",
      pod: "Its pod.",
      container: "Name of the container.",
      artifact: "Artifact that it runs.",
      runtime: "Runtime of the debugger: go, jvm, nodejs, python …",
      ports: "Ports of the debugger by their names, as JSON.",
    },
  },
};
