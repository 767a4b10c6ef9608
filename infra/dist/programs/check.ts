import { get as getPlain, type IncomingMessage } from "node:http";
import { get as getWithTls } from "node:https";
import { isIPv6 } from "node:net";
import { gatewaySettings } from "@tapedeck/gateway/for-cli/settings";
import { ingestSettings } from "@tapedeck/ingest/for-cli/settings";
import { querySettings } from "@tapedeck/query/for-cli/settings";
import { type SettingsSources, settingsReader } from "@tapedeck/shared/service/settings";

export const checkedServices = ["ingest", "query", "gateway"] as const;

export type CheckedService = (typeof checkedServices)[number];

type Health = { readonly host: string; readonly port: number; readonly tls?: object | undefined };

/**
 * Where each service reports its health on this machine. Wrong settings do not matter here: the service reports them.
 */
const healthOf: Readonly<Record<CheckedService, (sources: SettingsSources) => Health>> = {
  ingest: (sources) => ingestSettings(settingsReader(sources)).health,
  query: (sources) => querySettings(settingsReader(sources)).health,
  gateway: (sources) => {
    const { http, tls } = gatewaySettings(settingsReader(sources));
    return { ...http, tls };
  },
};

export type Checked = { readonly isWell: boolean; readonly text: string };

/**
 * Asks the services of this machine how they are, at the ports that the settings name: whether one of them lives, or with
 * `ready` whether it can serve. In a container, where one of them runs, that is the one.
 */
export async function check(
  services: readonly CheckedService[],
  path: "/healthz" | "/readyz",
  sources: SettingsSources,
): Promise<Checked> {
  const answers = await Promise.all(
    services.map(async (service) => ({ service, ...(await answerOf(healthOf[service](sources), path)) })),
  );
  const answered = answers.filter(({ status }) => status !== undefined);
  const shown = answered.length > 0 ? answered : answers;
  return {
    isWell: answered.length > 0 && answered.every(({ status }) => status === 200),
    text: shown.map(({ service, text }) => `${service}: ${text}\n`).join(""),
  };
}

type Answer = { readonly status: number | undefined; readonly text: string };

/** Resolves without a status when no answer comes within a few seconds. */
function answerOf({ host, port, tls }: Health, path: string): Promise<Answer> {
  const options = {
    host: reachable(host),
    port,
    path,
    headers: { host: "localhost" },
    timeout: timeoutMs,
    agent: false,
  };
  return new Promise((resolve) => {
    const failed = (error: Error) => resolve({ status: undefined, text: error.message });
    const answered = (response: IncomingMessage) => {
      response
        .toArray()
        .then((parts) => resolve({ status: response.statusCode, text: Buffer.concat(parts).toString() }), failed);
    };
    // The certificate is for the name by which others come here.
    const request =
      tls === undefined ? getPlain(options, answered) : getWithTls({ ...options, rejectUnauthorized: false }, answered);
    request.on("error", failed).on("timeout", () => request.destroy(new Error("no answer")));
  });
}

const timeoutMs = 5_000;

/** All addresses of a machine are no address to go to. */
function reachable(host: string): string {
  const plain = host.replace(/^\[(.*)\]$/, "$1");
  if (plain === "0.0.0.0") return "127.0.0.1";
  return isIPv6(plain) && /^[0:]+$/.test(plain) ? "::1" : plain;
}
