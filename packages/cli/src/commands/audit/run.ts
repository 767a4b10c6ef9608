import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import { jsonText, print } from "../../display/output.ts";
import { plainLine } from "../../display/plain-line.ts";
import { remoteMaintenance } from "../../maintain/remote.ts";

export type AuditOptions = {
  readonly url?: string;
  readonly since?: string;
  readonly until?: string;
  readonly json?: boolean;
  readonly limit?: number;
};

/** Prints the audit log of a Tapedeck server: a line for each entry, with `--json` as JSON. */
export async function audit({ url, json = false, limit, ...period }: AuditOptions): Promise<void> {
  let count = 0;
  const held: AuditEntry[] = [];
  const show = (entry: AuditEntry) => print(json ? jsonText(entry) : lineOf(entry));
  for await (const entry of remoteMaintenance(url).audit(period)) {
    count++;
    if (limit === undefined) show(entry);
    else if (held.push(entry) > limit) held.shift();
  }
  for (const entry of held) show(entry);
  if (count === 0 && !json) print("No actions are recorded.");
}

function lineOf({ time, action, kind, who, workspace, about }: AuditEntry): string {
  const more = Object.entries(about).map(
    ([name, value]) => `${name}=${Array.isArray(value) ? value.join(",") : value}`,
  );
  const day = new Date(time).toLocaleString("sv-SE");
  // The kind is before everything that a caller can write.
  return plainLine([day, action.padEnd(17), kind.padEnd(7), workspace, who, ...more].join("  "));
}
