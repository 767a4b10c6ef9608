import { resolve } from "node:path";
import { readHealthReport } from "../../api/metrics.ts";
import { httpBase } from "../../gateway-address.ts";
import { type RunningUp, runningUp } from "../../local-server/lock.ts";
import { listenFailure } from "../../local-server/ports.ts";
import { readUpSettings } from "../../local-server/settings.ts";
import { askAbout } from "../../targets/about.ts";
import { localTapedeck } from "../../targets/local-tapedeck.ts";
import { connectTo } from "./connect-to.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

/** The Tapedeck that runs on a data folder, or the ports that one would take. */
export async function checkRunning(data: string, dataDir: string, env: NodeJS.ProcessEnv): Promise<readonly Finding[]> {
  const running = await runningUp(dataDir);
  return running === undefined ? checkPorts(data, env) : checkParts(running);
}

async function checkPorts(data: string, env: NodeJS.ProcessEnv): Promise<readonly Finding[]> {
  try {
    const listeners = Object.values(readUpSettings({ data }, env).listeners).filter(({ port }) => port !== 0);
    const failures = await Promise.all(listeners.map(listenFailure));
    const bad = listeners.filter((_, at) => failures[at] !== undefined);
    if (bad.length === 0) return [ok("ports", `free: ${listeners.map(({ port }) => port).join(", ")}`)];
    // It may well be the one that commands use.
    const here = await tapedeckHere(env);
    if (here !== undefined)
      return [ok("Tapedeck here", `one answers at ${here}, on another data folder than ${resolve(data)}`)];
    const taken = bad.map(({ host, port, what }) => `${host}:${port} (${what})`).join(", ");
    return [
      warn(
        "ports",
        `taken: ${taken}`,
        "stop what uses them (another Tapedeck?), or choose other ports before `tapedeck up`",
      ),
    ];
  } catch (error) {
    return [fail("settings", (error as Error).message, "correct them: `tapedeck up` would not start")];
  }
}

/** The address of a Tapedeck that listens on this machine's ports. */
async function tapedeckHere(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  try {
    const http = httpBase(localTapedeck(env).url, env);
    await askAbout(http, "");
    return http.base;
  } catch {
    return undefined;
  }
}

async function checkParts({ pid, mode, addresses }: RunningUp): Promise<readonly Finding[]> {
  const found = [ok("Tapedeck here", `runs as process ${pid}${mode === "demo" ? " (the demo)" : ""}`)];
  for (const part of ["nats", "postgres"] as const) {
    const name = part === "nats" ? "NATS" : "Postgres";
    const address = addresses[part];
    if (address === undefined) found.push(ok(name, "is your own server (from the settings)"));
    else if (await connectTo(address)) found.push(ok(name, `listens at ${address}`));
    else found.push(fail(name, `does not answer at ${address}`, "check its log in the data folder, and restart"));
  }
  for (const service of ["ingest", "query"] as const) {
    const address = addresses[service];
    if (address === undefined) continue;
    if (!(await connectTo(address)))
      found.push(fail(service, `does not answer at ${address}`, "check log/ in the data folder"));
    else {
      const { problems, warnings } = await readHealthReport(`http://${address}`);
      if (problems.length > 0) found.push(fail(service, problems.join("; "), "see `tapedeck status`"));
      else if (warnings.length > 0) found.push(warn(service, warnings.join("; "), "see `tapedeck status`"));
      else found.push(ok(service, "is ready"));
    }
  }
  return found;
}
