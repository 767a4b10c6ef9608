import { Basis, Box, Project, Runner, Target } from "@tapedeck/proto/vagrant/vagrant";
import type { ResourceKind } from "./resources.ts";

/** The upstream's message for the resources of each kind. */
export const resourceMessages = {
  target: { type: "hashicorp.vagrant.Target", message: Target },
  project: { type: "hashicorp.vagrant.Project", message: Project },
  basis: { type: "hashicorp.vagrant.Basis", message: Basis },
  box: { type: "hashicorp.vagrant.Box", message: Box },
  runner: { type: "hashicorp.vagrant.Runner", message: Runner },
} as const satisfies Record<ResourceKind, { readonly type: string; readonly message: object }>;
