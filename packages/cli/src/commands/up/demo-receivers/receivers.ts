import { ownValue } from "@tapedeck/shared/own-value";
import type { UpSettings } from "../../../local-server/settings.ts";
import type { DemoReceiver, StartReceiver } from "./receiver.ts";

/** What `tapedeck up --with` takes: each prints what it gets. */
const receivers: Readonly<Record<string, () => Promise<StartReceiver>>> = {
  otlp: async () => (await import("./otlp-receiver.ts")).startOtlpReceiver,
  slack: async () => (await import("./slack-receiver.ts")).startSlackReceiver,
};

export const receiverNames: readonly string[] = Object.keys(receivers);

/** Starts those that are named; they end with the stack. */
export async function startReceivers(
  names: readonly string[],
  stack: AsyncDisposableStack,
  printLine: (line: string) => void,
): Promise<readonly DemoReceiver[]> {
  const started: DemoReceiver[] = [];
  for (const name of new Set(names)) {
    const start = await ownValue(receivers, name)?.();
    if (start !== undefined) started.push(stack.use(await start(printLine)));
  }
  return started;
}

/** The settings by which the services deliver to them, beside the user's own sinks. */
export function receiverEnv(
  started: readonly DemoReceiver[],
  { sinks, sinkHosts }: Pick<UpSettings, "sinks" | "sinkHosts">,
): Readonly<Record<string, string>> {
  if (started.length === 0) return {};
  const own = started.map(({ name, sink }) => ({ name: `demo-${name}`, ...sink }));
  return {
    TAPEDECK_SINKS: JSON.stringify([...sinks, ...own]),
    TAPEDECK_GATEWAY_SINK_HOSTS: JSON.stringify([...sinkHosts, ...started.map(({ host }) => host)]),
  };
}
