import type { UpstreamState } from "../upstream-state.ts";
import { vagrantStateJson } from "./state-json.ts";

export const vagrantState: UpstreamState = {
  // The jobs are those of all sessions.
  isLarge: true,
  collections: [
    ["vagrant.version", "hashicorp.vagrant.GetVersionInfoResponse"],
    ["vagrant.targets", "hashicorp.vagrant.Target"],
    ["vagrant.projects", "hashicorp.vagrant.Project"],
    ["vagrant.bases", "hashicorp.vagrant.Basis"],
    ["vagrant.boxes", "hashicorp.vagrant.Box"],
    ["vagrant.runners", "hashicorp.vagrant.Runner"],
    ["vagrant.jobs", "hashicorp.vagrant.Job"],
  ],
  toJson: vagrantStateJson,
};
