import { Basis, Box, Project, Runner, Target } from "@tapedeck/proto/vagrant/vagrant";
import type { ThingKind } from "./things.ts";

/** What the upstream tells of things of each kind. */
export const messages = {
  target: { type: "hashicorp.vagrant.Target", message: Target },
  project: { type: "hashicorp.vagrant.Project", message: Project },
  basis: { type: "hashicorp.vagrant.Basis", message: Basis },
  box: { type: "hashicorp.vagrant.Box", message: Box },
  runner: { type: "hashicorp.vagrant.Runner", message: Runner },
} as const satisfies Record<ThingKind, { readonly type: string; readonly message: object }>;
