import { type Logger, pino } from "pino";

export type { Logger };

/** One line per event, JSON; for people (a terminal, or TAPEDECK_LOG_FORMAT=pretty) readable. Goes to stderr. */
export function createLogger(service: string, env: NodeJS.ProcessEnv = process.env): Logger {
  const level = env.TAPEDECK_LOG_LEVEL ?? "info";
  const format = env.TAPEDECK_LOG_FORMAT ?? (process.stderr.isTTY ? "pretty" : "json");
  const options = { name: service, level: isLevel(level) ? level : "info", base: { service } };
  if (format !== "pretty") return pino(options, pino.destination({ fd: 2, sync: true }));
  const transport = pino.transport({
    target: "pino-pretty",
    options: {
      destination: 2,
      ignore: "pid,hostname,name,service",
      messageFormat: "{service}: {msg}",
      translateTime: "HH:MM:ss",
    },
  });
  return pino(options, transport);
}

/** Says nothing: for tests and for callers that have no log. */
export const silentLogger: Logger = pino({ level: "silent" });

function isLevel(text: string): boolean {
  return text === "silent" || text in pino.levels.values;
}
