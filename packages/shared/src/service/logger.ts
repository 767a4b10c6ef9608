import { type Logger, pino } from "pino";
import { prettyFactory } from "pino-pretty";
import { LogOutput } from "../output/log-output.ts";
import { escapedJson, terminalText } from "../output/terminal-text.ts";

export type { Logger };

/**
 * One line per event, JSON; for people (a terminal, or TAPEDECK_LOG_FORMAT=pretty) readable. Goes to stderr. A line that
 * can't be written (a full disk, a reader that is gone) ends nothing.
 */
export function createLogger(service: string, env: NodeJS.ProcessEnv = process.env): Logger {
  const level = env.TAPEDECK_LOG_LEVEL ?? "info";
  const format = env.TAPEDECK_LOG_FORMAT ?? (process.stderr.isTTY ? "pretty" : "json");
  const options = { name: service, level: isLevel(level) ? level : "info", base: { service } };
  const output = format === "pretty" ? prettyLine() : escapedJson;
  const missing = (lines: number) => {
    const msg = `${lines} log lines before this one could not be written`;
    return output(
      `${JSON.stringify({ level: pino.levels.values.warn, time: Date.now(), service, name: service, msg })}\n`,
    );
  };
  const stderr = new LogOutput(2, missing);
  return pino(options, { write: (line: string) => stderr.write(output(line)) });
}

/** Messages quote what was recorded, which must not reach a terminal as it is. */
function prettyLine(): (line: string) => string {
  const pretty = prettyFactory({
    colorize: process.stderr.isTTY === true && !process.env.NO_COLOR,
    ignore: "pid,hostname,name,service",
    messageFormat: "{service}: {msg}",
    translateTime: "HH:MM:ss",
  });
  return (line) => pretty(JSON.parse(line, (_key, value) => (typeof value === "string" ? terminalText(value) : value)));
}

/** Says nothing: for tests and for callers that have no log. */
export const silentLogger: Logger = pino({ level: "silent" });

function isLevel(text: string): boolean {
  return text === "silent" || Object.hasOwn(pino.levels.values, text);
}
