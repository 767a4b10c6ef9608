import { Transform } from "node:stream";
import { type LogLevel, logLevels } from "./command.ts";

export type LogFilterOptions = {
  /** The log level that the user's own settings show: the rest of the log is for Tapedeck alone. */
  readonly level: LogLevel | undefined;
  /** Where the log says that Vagrant's server listens. */
  readonly onAddress: (address: string) => void;
};

const logLine = /^\d{4}-\d{2}-\d{2}T[\d:.]\S* \[(TRACE|DEBUG|INFO|WARN|ERROR)\]/;
/** Values of several lines stand below the line that they belong to, and below them what else it has, or two spaces. */
const belowLogLine = /^ {2}(?:$|\| |\S+=$| \S+=)/;
/** Not yet whole. A prompt is none, and must not wait for its end. */
const partOfLogLine = /^\d{1,4}(?:$|(?<=\d{4})-)/;
const partOfBelow = /^ (?:$| (?:$|\||\S+$| (?:\S*$|\S+=)))/;
const serverAddress = /\baddr=(127\.0\.0\.1:\d+)/;
const lineFeed = 10;
/** Whether a line may be hidden is decided by so much of it, however long it becomes. */
const headBytes = 1_024;

/** Reads Vagrant's log from its stderr, and lets through what the user would have seen without us, byte by byte. */
export function logFilter({ level, onAddress }: LogFilterOptions): Transform {
  const lowest = level === undefined ? logLevels.length : logLevels.indexOf(level);
  /** The line that has no end yet. */
  let parts: Buffer[] = [];
  let head = "";
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

  function takeLine(last: Buffer): Buffer {
    const line = parts.length === 0 ? last : Buffer.concat([...parts, last]);
    parts = [];
    head = "";
    return line;
  }

  return new Transform({
    transform(chunk: Buffer, _, done) {
      let start = 0;
      for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
        const line = takeLine(chunk.subarray(start, end + 1));
        start = end + 1;
        if (isForUser(line)) this.push(line);
      }
      const rest = chunk.subarray(start);
      if (rest.length > 0) {
        if (head.length < headBytes) head += rest.toString("latin1", 0, headBytes);
        if (mayBeHidden(head)) {
          parts.push(rest);
        } else {
          this.push(takeLine(rest));
          isHidden = false;
        }
      }
      done();
    },
    flush(done) {
      const line = takeLine(Buffer.alloc(0));
      if (line.length > 0 && isForUser(line)) this.push(line);
      done();
    },
  });
}
