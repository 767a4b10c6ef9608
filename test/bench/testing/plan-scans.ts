/** A node of `explain (analyze, format json)`. */
export type Plan = {
  readonly "Node Type"?: string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Plan[];
};

const large = new Set(["operations", "build_days", "finished_loops", "vagrant_jobs", "rkt_pods", "rkt_apps"]);

type Scan = { readonly relation: string; readonly rows: number; readonly isWhole: boolean };

/** The tables that a plan reads, with the number of rows read, and whether it reads all of a large one. */
export function scans(plan: Plan): readonly Scan[] {
  const relation = plan["Relation Name"];
  const rows = ((plan["Actual Rows"] ?? 0) + (plan["Rows Removed by Filter"] ?? 0)) * (plan["Actual Loops"] ?? 0);
  const isWhole = plan["Node Type"] === "Seq Scan" && large.has(relation ?? "");
  return [...(relation === undefined ? [] : [{ relation, rows, isWhole }]), ...(plan.Plans ?? []).flatMap(scans)];
}
