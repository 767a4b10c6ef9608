import { version } from "@tapedeck/shared/version";

const services: Readonly<Record<string, () => Promise<unknown>>> = {
  ingest: () => import("@tapedeck/ingest/main"),
  query: () => import("@tapedeck/query/main"),
  gateway: () => import("@tapedeck/gateway/main"),
};

const usage = `Usage: tapedeck-server ingest|query|gateway
       tapedeck-server check [--ready] [ingest|query|gateway]

Runs one of Tapedeck's services until SIGTERM, with settings from the environment (TAPEDECK_…) and from the file that
TAPEDECK_CONFIG names. It logs to stderr. To run all of them with their own NATS and Postgres: tapedeck up.

check asks a service that runs here with the same settings whether it lives, or with --ready whether it can serve. It exits
with 0 if so, else with 1. Without a name it asks whichever runs.
`;

const [name = "", ...others] = process.argv.slice(2);
const service = services[name];
if (name === "--version") process.stdout.write(`${version}\n`);
else if (name === "--help" || name === "-h") process.stdout.write(usage);
else if (name === "check" && areWordsOfCheck(others)) await checkServices(others);
else if (service === undefined || others.length > 0) {
  process.stderr.write(usage);
  process.exitCode = 1;
} else await service();

function areWordsOfCheck(words: readonly string[]): boolean {
  const [named, more] = words.filter((word) => word !== "--ready");
  return more === undefined && (named === undefined || Object.hasOwn(services, named));
}

async function checkServices(words: readonly string[]): Promise<void> {
  const { check, checkedServices } = await import("./check.ts");
  const { settingsSources } = await import("@tapedeck/shared/service/settings");
  const named = checkedServices.filter((service) => words.includes(service));
  const path = words.includes("--ready") ? "/readyz" : "/healthz";
  const { isWell, text } = await check(named.length > 0 ? named : checkedServices, path, settingsSources(process.env));
  (isWell ? process.stdout : process.stderr).write(text);
  if (!isWell) process.exitCode = 1;
}
