import { resolve } from "node:path";
import { coloured } from "../../display/colour.ts";
import { print, printJson } from "../../display/output.ts";
import { checkChosen } from "./chosen.ts";
import type { Finding } from "./finding.ts";
import { checkRunning } from "./running.ts";
import { checkDataFolder, checkNames, checkNode, checkPrograms, checkSpill } from "./this-machine.ts";

export type DoctorOptions = { readonly url?: string; readonly json?: boolean; readonly data: string };

const colours = { ok: "green", warn: "yellow", fail: "red" } as const;

/** Checks everything that may be in the way, and prints how to fix it. The exit code is 1 if a check fails. */
export async function doctor({ url, data, json }: DoctorOptions): Promise<void> {
  const { env } = process;
  const dataDir = resolve(data);
  const findings = [
    checkNode(),
    ...(await checkDataFolder(dataDir)),
    ...(await checkRunning(data, dataDir, env)),
    ...(await checkChosen(url)),
    checkNames(env, process.cwd()),
    await checkSpill(env),
    ...checkPrograms(env.PATH),
  ];
  const failed = findings.filter(({ state }) => state === "fail").length;
  if (json) printJson({ findings });
  else {
    const width = Math.max(...findings.map(({ check }) => check.length));
    for (const finding of findings) print(lineOf(finding, width));
    if (failed > 0) print(`\n${failed === 1 ? "1 check failed" : `${failed} checks failed`}`);
  }
  process.exitCode = failed > 0 ? 1 : 0;
}

function lineOf({ check, state, what, advice }: Finding, width: number): string {
  const line = `${coloured(colours[state], state.padEnd(4))}  ${check.padEnd(width)}  ${what}`;
  return advice === undefined ? line : `${line}\n${" ".repeat(width + 8)}${coloured("dim", `→ ${advice}`)}`;
}
