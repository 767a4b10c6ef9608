import type { Dashboard } from "../dashboard.ts";
import { buildsDashboard } from "./builds.ts";
import { failures } from "./failures.ts";
import { innerLoop } from "./inner-loop.ts";
import { machines } from "./machines.ts";
import { recorder } from "./recorder.ts";

export const dashboards: readonly Dashboard[] = [innerLoop, buildsDashboard, failures, machines, recorder];
