import { type RelationComment, shared } from "./comment.ts";

const ofSession = shared("session", "source");
const ofHistory = { ...ofSession, ...shared("gone", "gone_at", "first_position", "last_position") };

/** Pods and images of rkt's hosts. */
export const rktComments: Readonly<Record<string, RelationComment>> = {
  pod_runs: {
    about: "One row for each run of a pod. A pod that ran before its host was recorded has one only after its end.",
    columns: {
      ...shared("source", "workspace", "developer", "project", "session", "started_at", "ended_at", "duration_ms"),
      ...shared("outcome", "error", "start_position", "start_position_text", "gone"),
      pod: "Id (UUID) of the pod.",
      name: "Name from a kubelet, else its id.",
      state: "State as last recorded, without rkt's prefix.",
      apps: "Number of its apps.",
      failed_apps: "Number of its apps with an exit code above 0.",
    },
  },
  rkt_pods: {
    about: "One row for each pod, including those that are gone.",
    columns: {
      ...ofHistory,
      pod: "Id (UUID) of the pod.",
      name: "Name from a kubelet, else its id.",
      state: "State without rkt's prefix. UNDEFINED: rkt is deleting the pod.",
      pid: "Process id on the host; null: not known.",
      cgroup: "Its control group; empty: not known.",
      created_at: "When it was created; null: not known.",
      started_at: "When it was started; null: not.",
      gc_marked_at: "When it was marked for garbage collection; null: not.",
      apps: "Number of its apps.",
    },
  },
  rkt_apps: {
    about: "One row for each app of a pod, including those that are gone.",
    columns: {
      ...ofHistory,
      pod: "Id of its pod: rkt_pods.pod.",
      app: "Name of the app in its pod.",
      image_id: "Id of its image, by the pod's manifest.",
      image_name: "Name of that image.",
      image_version: "Version of that image.",
      state: "Its state, without rkt's prefix.",
      exit_code: "Its exit code; null while it runs; 0 also where the code is unknown.",
    },
  },
  rkt_images: {
    about: "One row for each image, including those that are gone.",
    columns: {
      ...ofHistory,
      image: "Id of the image.",
      name: "Name of the image.",
      version: "Version of the image; empty: none.",
      imported_at: "When it was imported; null: not known.",
      size: "Its size in bytes.",
      labels: "Labels of the image's manifest, as JSON.",
    },
  },
  rkt_networks: {
    about: "One row for each network of a pod.",
    columns: {
      ...ofSession,
      pod: "Id of the pod: rkt_pods.pod.",
      network: "Name of the network.",
      ipv4: "The pod's IPv4 address in it; empty: none.",
      ipv6: "The pod's IPv6 address in it; empty: none.",
    },
  },
};
