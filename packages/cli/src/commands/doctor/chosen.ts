import { commandToStart } from "@tapedeck/shared/installation";
import { largestPage } from "@tapedeck/shared/largest-page";
import { version } from "@tapedeck/shared/version";
import { apiAt } from "../../api/api.ts";
import { type HealthReport, readHealthReport } from "../../api/metrics.ts";
import { setAsideLines } from "../../api/set-aside.ts";
import { durationText } from "../../display/durations.ts";
import { type HttpBase, httpBase } from "../../gateway-address.ts";
import { type GrpcTarget, grpcTarget } from "../../grpc-target.ts";
import { askAbout, type ServerInfo } from "../../targets/about.ts";
import { UntrustedCertificate, urlTrustAdvice } from "../../untrusted-certificate.ts";
import { clockWarnings } from "../status/run.ts";
import { connectTo } from "./connect-to.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

type SourceClock = Parameters<typeof clockWarnings>[0];

/** Beyond it, times in lists and lifetimes of tokens mislead. */
const maxSkewMs = 5_000;

/** The Tapedeck that commands go to. */
export async function checkChosen(url: string | undefined): Promise<readonly Finding[]> {
  let at: { readonly http: HttpBase; readonly grpc: GrpcTarget };
  try {
    at = { http: httpBase(url), grpc: grpcTarget(url) };
  } catch (error) {
    return [fail("address", (error as Error).message, "see docs/team.md")];
  }
  const startedAt = Date.now();
  try {
    const about = await askAbout(at.http, urlTrustAdvice);
    const took = Date.now() - startedAt;
    return [
      ok("HTTP", `${at.http.base} answers in ${took} ms`),
      await grpcFinding(at.grpc, about),
      versionFinding(about.version),
      tokenFinding(about),
      clockFinding(Date.parse(about.time) - (startedAt + took / 2)),
      ...warningFindings(await readHealthReport(at.http.base)),
      ...tablesFinding(await setAsideLines(apiAt(url))),
      ...(await sourceClockFindings(url)),
    ];
  } catch (error) {
    if (error instanceof UntrustedCertificate) return [fail("HTTP", error.what, error.advice)];
    const { message } = error as Error;
    const named = "its address with --url, TAPEDECK_URL or `tapedeck login`";
    const advice = message.includes("TLS")
      ? `give ${named}: https://…`
      : `start it (\`${commandToStart()}\`), or give ${named}`;
    return [fail("HTTP", message, advice)];
  }
}

/** Nothing where the sources can't be read: other findings say why. */
async function sourceClockFindings(url: string | undefined): Promise<readonly Finding[]> {
  const sources = await apiAt(url)
    .get<{ readonly items: readonly SourceClock[] }>("/api/v1/sources", { limit: largestPage })
    .catch(() => undefined);
  return (sources?.items ?? []).flatMap((source) =>
    clockWarnings(source).map((text) =>
      warn("clock", text, "synchronise the clocks of that machine and of its upstream's (NTP)"),
    ),
  );
}

async function grpcFinding({ address }: GrpcTarget, { grpcPort }: ServerInfo): Promise<Finding> {
  if (await connectTo(address)) return ok("gRPC", `listens at ${address}`);
  const other = address.endsWith(`:${grpcPort}`)
    ? "check for a firewall in between"
    : `the server reports port ${grpcPort}: set TAPEDECK_GRPC_PORT, or log in again`;
  return fail("gRPC", `nothing listens at ${address}`, other);
}

/** Minor versions may add; others may not understand each other. */
export function versionFinding(theirs: string, ours = version): Finding {
  if (theirs === ours) return ok("version", `client and server are both ${ours}`);
  const [major, minor] = theirs.split(".");
  const [ourMajor, ourMinor] = ours.split(".");
  const isNear = major === ourMajor && (major !== "0" || minor === ourMinor);
  const text = `the client is ${ours}, the server is ${theirs}`;
  return isNear ? ok("version", text) : warn("version", text, "use the same version on both sides");
}

export function tokenFinding({ auth, token }: Pick<ServerInfo, "auth" | "token">): Finding {
  if (auth === "none") return ok("token", "not required");
  if (token === undefined)
    return fail("token", "the server requires one, and none is set", "run `tapedeck login`, or set TAPEDECK_TOKEN");
  const { name, roles, workspace, developer } = token;
  const who = `${name}: ${roles.join(", ")} in ${workspace}${developer === undefined ? "" : `, as ${developer}`}`;
  const [canRead, canRecord] = [
    roles.some((role) => role !== "recorder"),
    roles.some((role) => role === "recorder" || role === "admin"),
  ];
  if (canRead && canRecord) return ok("token", who);
  const lacks = canRead
    ? "it can't record (that needs the role recorder)"
    : "it can't read (that needs the role viewer)";
  return warn(
    "token",
    `${who}; ${lacks}`,
    "no action needed unless you need that: an admin can create a token with both roles",
  );
}

/** What the server reports that stops nothing. Its failures are findings of other checks. */
export function warningFindings({ warnings }: Pick<HealthReport, "warnings">): readonly Finding[] {
  return warnings.map((text) => warn("server", text, "see docs/operations.md"));
}

/** No finding where the tables have everything, or where the server does not report what they lack. */
export function tablesFinding(setAside: readonly string[]): readonly Finding[] {
  if (setAside.length === 0) return [];
  return [
    warn("tables", setAside.join("; "), "see docs/operations.md#tapedeckeventssetaside: a rebuild tries them again"),
  ];
}

export function clockFinding(skewMs: number): Finding {
  const text = durationText(Math.abs(skewMs));
  if (Math.abs(skewMs) <= maxSkewMs) return ok("clock", `agrees within ${text}`);
  return warn(
    "clock",
    `this machine is ${text} ${skewMs > 0 ? "behind" : "ahead"}`,
    "synchronise the clock (NTP): displayed times depend on it",
  );
}
