import { Transform } from "node:stream";
import { type LogLevel, logLevels } from "./command.ts";

export type LogFilterOptions = {
  /** The log level that the user's own settings show: the rest of the log is for Tapedeck alone. */
  readonly level: LogLevel | undefined;
  /** Where the log says that Vagrant's server listens. */
  readonly onAddress: (address: string) => void;
};

const logLine = /^\d{4}-\d{2}-\d{2}T[\d:.]+\S* \[(TRACE|DEBUG|INFO|WARN|ERROR)\]/;
/** Values of several lines stand below the line that they belong to, and below them what else it has, or two spaces. */
const belowLogLine = /^ {2}(?:$|\| |\S+=$| \S+=)/;
/** Not yet whole. A prompt is none, and must not wait for its end. */
const partOfLogLine = /^\d{1,4}(?:$|(?<=\d{4})-)/;
const partOfBelow = /^ (?:$| (?:$|\||\S+$| (?:\S*$|\S+=)))/;
const serverAddress = /\baddr=(127\.0\.0\.1:\d+)/;
const lineFeed = 10;

/** Reads Vagrant's log from its stderr, and lets through what the user would have seen without us, byte by byte. */
export function logFilter({ level, onAddress }: LogFilterOptions): Transform {
  const lowest = level === undefined ? logLevels.length : logLevels.indexOf(level);
  let part: Buffer = Buffer.alloc(0);
  let isHidden = false;

  function isForUser(bytes: Buffer): boolean {
    const line = bytes.toString("latin1").replace(/\r?\n$/, "");
    const [, level] = logLine.exec(line) ?? [];
    if (level === undefined) {
      isHidden &&= belowLogLine.test(line);
    } else {
      const [, address] = serverAddress.exec(line) ?? [];
      if (address !== undefined) onAddress(address);
      isHidden = logLevels.findIndex((name) => name.toUpperCase() === level) < lowest;
    }
    return !isHidden;
  }

  function mayBeHidden(start: string): boolean {
    return partOfLogLine.test(start) || (isHidden && partOfBelow.test(start));
  }

  return new Transform({
    transform(chunk: Buffer, _, done) {
      part = Buffer.concat([part, chunk]);
      for (let end = part.indexOf(lineFeed); end >= 0; end = part.indexOf(lineFeed)) {
        const line = part.subarray(0, end + 1);
        part = part.subarray(end + 1);
        if (isForUser(line)) this.push(line);
      }
      if (part.length > 0 && !mayBeHidden(part.toString("latin1"))) {
        this.push(part);
        part = Buffer.alloc(0);
        isHidden = false;
      }
      done();
    },
    flush(done) {
      if (part.length > 0 && isForUser(part)) this.push(part);
      done();
    },
  });
}
